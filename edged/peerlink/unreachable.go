package peerlink

import (
	"strconv"
	"strings"
)

// unreached is why a replica could not be reached: an ErrUnreachable in the words of the cause alone.
type unreached string

func (u unreached) Error() string { return string(u) }

// Is makes it an ErrUnreachable.
func (u unreached) Is(target error) bool { return target == ErrUnreachable }

// unreachable takes out of the text of a broken call what gRPC has wrapped around the cause. A refusal stays one: what was
// wrong with the other side is known then.
func unreachable(text string) error {
	if quoted, ok := strings.CutPrefix(text, "connection error: desc = "); ok {
		if plain, err := strconv.Unquote(quoted); err == nil {
			text = plain
		}
	}
	text = strings.TrimPrefix(text, "transport: Error while dialing: ")
	if before, after, ok := strings.Cut(text, ":0->"); ok { // the address that is dialled from says nothing
		if at := strings.LastIndexByte(before, ' '); at >= 0 {
			text = before[:at+1] + after
		}
	}
	if strings.HasPrefix(text, ErrRefused.Error()+": ") {
		return told(text)
	}
	return unreached(text)
}
