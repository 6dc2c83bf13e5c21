#!/bin/sh
# Generates record.pb.go. Needs protoc; the Go plugin is built from the version in go.mod.
set -eu
cd "$(dirname "$0")/../.."
plugins=$(mktemp -d)
trap 'rm -rf "$plugins"' EXIT
go build -o "$plugins/protoc-gen-go" google.golang.org/protobuf/cmd/protoc-gen-go
protoc --plugin="$plugins/protoc-gen-go" --go_out=. --go_opt=module=iop proto/recordpb/record.proto
