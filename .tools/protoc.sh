#!/bin/sh
# protoc.sh write|check FILE.proto…: generates Go code with the plugins pinned in .tools/go.mod, into the tree, or
# beside it to compare. check is skipped without the protoc that made the code in the tree, as its version is in there.
set -eu
mode=$1
shift
cd "$(dirname "$0")/.."

made_by=$(sed -n 's|^//.*protoc  *v\([0-9.]*\)$|\1|p' proto/*/*.pb.go | sort -u)
have=$(protoc --version 2>/dev/null | sed 's/^libprotoc //' || true)
if [ -z "$have" ]; then
	[ "$mode" = check ] && { echo "generated code: not checked, there is no protoc $made_by here"; exit 0; }
	echo "protoc is missing: install version $made_by (package protobuf-compiler), then run make proto again" >&2
	exit 1
fi
if [ "$mode" = check ] && [ "$have" != "$made_by" ]; then
	echo "generated code: not checked, it was made by protoc $made_by and this is $have"
	exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -modfile=.tools/go.mod -o "$work/" google.golang.org/protobuf/cmd/protoc-gen-go google.golang.org/grpc/cmd/protoc-gen-go-grpc

out=.
if [ "$mode" = check ]; then
	out=$work/out
	mkdir "$out"
fi
for file; do
	protoc --plugin="$work/protoc-gen-go" --plugin="$work/protoc-gen-go-grpc" \
		--go_out="$out" --go_opt=module=iop --go-grpc_out="$out" --go-grpc_opt=module=iop "$file"
done
[ "$mode" = write ] && exit 0

for file in proto/*/*.pb.go; do
	diff -u "$file" "$out/$file" || { echo "$file is not what its .proto gives: run make proto and commit" >&2; exit 1; }
done
echo "generated code: current"
