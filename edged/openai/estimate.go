package openai

import (
	"math"
	"sync/atomic"
)

// Weights of characters in 1/64 tokens, by how many bytes UTF-8 gives them: an ASCII letter is a quarter of a token, a
// Greek, Cyrillic or Arabic one nearly half, a Chinese, Japanese or Korean one two thirds, an emoji two tokens.
const (
	tokenUnit   = 64
	weightASCII = 16
	weightTwo   = 28
	weightThree = 42
	weightFour  = 128

	messageTokens = 4    // what a chat template adds per message
	remoteImage   = 1024 // an image whose size can't be told
)

// weights gives each byte its share: a leading byte has the whole character's.
var weights = func() (w [256]uint8) {
	for i := range w {
		switch {
		case i < 0x80:
			w[i] = weightASCII
		case i >= 0xf0:
			w[i] = weightFour
		case i >= 0xe0:
			w[i] = weightThree
		case i >= 0xc0:
			w[i] = weightTwo
		}
	}
	return w
}()

// What a tally counts at the moment.
const (
	countNone   = iota
	countValues // texts, but not the keys around them
	countAll
)

// meaning is what the last key says about a string that follows it.
type meaning uint8

const (
	meansText  meaning = iota
	meansImage         // url, image_url: a picture, or a link to one
	meansSound         // data, file_data: base64 of something else
)

// tally sums up the text for the model.
type tally struct {
	sum    int64 // in 1/64 tokens
	what   int
	next   meaning
	images int // pictures so far
}

// key takes a key that str has already weighed; was is the sum before it.
func (t *tally) key(k []byte, plain bool, was int64) {
	if t.what != countAll {
		t.sum = was
	}
	t.next = meansText
	if !plain {
		return
	}
	switch string(k) {
	case "url", "image_url":
		t.next = meansImage
	case "data", "file_data":
		t.next = meansSound
	case "role":
		t.sum += messageTokens * tokenUnit
	}
}

// value takes a string value that str has already weighed; was is the sum before it.
func (t *tally) value(v []byte, plain bool, was int64) {
	switch {
	case t.next == meansImage || len(v) > 64 && string(v[:5]) == "data:":
		t.images++
		t.sum = was + imageTokens(v, plain && t.images <= imagesMax)*tokenUnit
	case t.next == meansSound:
		t.sum = was + int64(len(v))/soundBytesPerToken*tokenUnit
	}
	t.next = meansText
}

// number counts a number as a token: prompts can be lists of token ids.
func (t *tally) number() {
	if t.what != countNone {
		t.sum += tokenUnit
	}
}

// tokens is the estimate, rounded up.
func (t *tally) tokens() int64 { return (t.sum + tokenUnit - 1) / tokenUnit }

// Bounds of a model's scale, and the prompts it is learnt from: short ones are mostly template.
const (
	scaleMin       = 0.25
	scaleMax       = 4
	scaleTokensMin = 256
	scaleShare     = 0.1 // of a new observation
)

// scale corrects the estimates of one model by what its backends report. The zero value corrects nothing.
type scale struct{ bits atomic.Uint64 }

func (s *scale) ratio() float64 {
	if b := s.bits.Load(); b != 0 {
		return math.Float64frombits(b)
	}
	return 1
}

// apply corrects an estimate.
func (s *scale) apply(tokens int64) int64 { return int64(math.Ceil(float64(tokens) * s.ratio())) }

// learn takes an uncorrected estimate and what the backend counted. One of two updates at the same time may be lost.
func (s *scale) learn(tokens, reported int64) {
	if tokens < scaleTokensMin || reported < scaleTokensMin {
		return
	}
	seen := min(max(float64(reported)/float64(tokens), scaleMin), scaleMax)
	s.bits.Store(math.Float64bits(s.ratio()*(1-scaleShare) + seen*scaleShare))
}
