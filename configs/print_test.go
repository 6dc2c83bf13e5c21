package configs_test

import (
	"testing"

	"iop/configs"
)

// Text that looks like something else stays text; what is empty keeps the only form it has.
func TestYAML(t *testing.T) {
	got, err := configs.YAML([]byte(`{"b":"77","a":[{"on":true,"x":"true","y":null,"z":"null"}],"none":[],"o":{},"s":"a: b","n":1.5,"e":""}`))
	want := "b: \"77\"\na:\n  - on: true\n    x: \"true\"\n    y: null\n    z: \"null\"\nnone: []\no: {}\ns: 'a: b'\nn: 1.5\ne: \"\"\n"
	if err != nil || string(got) != want {
		t.Errorf("got\n%s%v\nwant\n%s", got, err, want)
	}
	if _, err := configs.YAML([]byte(`{"a":`)); err == nil {
		t.Error("half a text was taken")
	}
}
