package nodepb

import (
	"bufio"
	"errors"
	"io"
	"strconv"
)

// AppendChunkStart adds the size line of a chunk of n > 0 bytes; n bytes and CRLF follow.
func AppendChunkStart(b []byte, n int) []byte {
	b = strconv.AppendUint(b, uint64(n), 16)
	return append(b, "\r\n"...)
}

// AppendChunk adds a whole chunk. An empty p adds nothing, because an empty chunk is the last one.
func AppendChunk(b, p []byte) []byte {
	if len(p) == 0 {
		return b
	}
	b = AppendChunkStart(b, len(p))
	b = append(b, p...)
	return append(b, "\r\n"...)
}

// AppendEnd adds the last chunk and the outcome as trailers.
func AppendEnd(b []byte, o Outcome) []byte {
	b = append(b, "0\r\n"...)
	b = appendOutcome(b, o)
	return append(b, "\r\n"...)
}

// chunkMax bounds what a size line may say: 1 GiB, far above any buffer of ours.
const chunkMax = 1 << 30

// ReadChunkStart reads a size line; 0 is the last chunk, and ReadEnd comes next.
func ReadChunkStart(br *bufio.Reader) (int, error) {
	line, err := br.ReadSlice('\n')
	if err != nil {
		return 0, unexpected(err)
	}
	if len(line) < 3 || len(line) > 10 || line[len(line)-2] != '\r' {
		return 0, ErrMalformed
	}
	n := 0
	for _, c := range line[:len(line)-2] {
		d := hexDigit(c)
		if d < 0 {
			return 0, ErrMalformed
		}
		n = n<<4 | d
	}
	if n > chunkMax {
		return 0, ErrMalformed
	}
	return n, nil
}

// NextChunk looks into b, which begins behind a chunk's bytes, for a further chunk that is there as a whole: n bytes from
// start. n is 0 if there is none, or not yet, or if it is the last chunk.
func NextChunk(b []byte) (start, n int) {
	if len(b) < 6 || b[0] != '\r' || b[1] != '\n' {
		return 0, 0
	}
	i := 2
	for ; i < len(b) && i < 10; i++ {
		d := hexDigit(b[i])
		if d < 0 {
			break
		}
		n = n<<4 | d
	}
	start = i + 2
	if i == 2 || start > len(b) || b[i] != '\r' || b[i+1] != '\n' || n > len(b)-start {
		return 0, 0
	}
	return start, n
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	}
	return -1
}

// ReadChunkEnd reads the line end after a chunk's bytes.
func ReadChunkEnd(br *bufio.Reader) error {
	p, err := br.Peek(2)
	if err != nil {
		return unexpected(err)
	}
	if p[0] != '\r' || p[1] != '\n' {
		return ErrMalformed
	}
	_, err = br.Discard(2)
	return err
}

// endedWell is the trailer of nearly all answers.
const endedWell = HeaderDispatched + ": yes\r\n"

// ReadEnd reads the trailers.
func ReadEnd(br *bufio.Reader, o *Outcome) error {
	*o = Outcome{}
	for size := 0; size < HeadMax; {
		line, err := br.ReadSlice('\n')
		if err != nil {
			return unexpected(err)
		}
		size += len(line)
		if len(line) < 2 || line[len(line)-2] != '\r' {
			return ErrMalformed
		}
		if len(line) == 2 {
			if o.Dispatched == "" {
				return ErrMalformed
			}
			return nil
		}
		if string(line) == endedWell {
			o.Dispatched = "yes"
			continue
		}
		key, value, ok := cutField(string(line[:len(line)-2]))
		if !ok {
			return ErrMalformed
		}
		o.set(key, value)
	}
	return ErrHeadTooLarge
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
