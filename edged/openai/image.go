package openai

import (
	"bytes"
	"encoding/base64"
	"image"
	_ "image/gif"  // sizes of pictures
	_ "image/jpeg" // sizes of pictures
	_ "image/png"  // sizes of pictures
	"io"
)

// The size rule of pictures: one token per 28 × 28 pixels, as the common vision models cut them.
const (
	pixelsPerToken = 28 * 28
	imageTokensMin = 16
	imageTokensMax = 16384
	imageHeadBytes = 64 << 10 // of its base64, how much is read to find its size
	imagesMax      = 1024     // of one request whose sizes are looked at: a body has room for a million fake ones

	soundBytesPerToken = 1500 // of base64: about a tenth of a second of 16 kHz sound
)

// imageTokens estimates a picture from the content of a JSON string: a data URL, or a link.
func imageTokens(v []byte, plain bool) int64 {
	comma := bytes.IndexByte(v[:min(len(v), 128)], ',')
	if !plain || comma < 0 || !bytes.HasPrefix(v, []byte("data:")) {
		return remoteImage
	}
	head := v[comma+1:]
	head = head[:min(len(head), imageHeadBytes)]
	c, _, err := image.DecodeConfig(io.LimitReader(base64.NewDecoder(base64.StdEncoding, bytes.NewReader(head)), imageHeadBytes))
	if err != nil || c.Width <= 0 || c.Height <= 0 {
		return remoteImage
	}
	return min(max(int64(c.Width)*int64(c.Height)/pixelsPerToken, imageTokensMin), imageTokensMax)
}
