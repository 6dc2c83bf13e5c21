package cli

import "bytes"

// lineDecoder cuts an output into lines and has each that is a JSON object read. Programs print other things between them,
// a warning or a progress bar: those are passed over.
type lineDecoder struct {
	object dialect
	held   []byte // a line that has not ended
}

func (d *lineDecoder) feed(p []byte) error { return d.cut(p, d.line) }

// cut calls line for each line that ends in p.
func (d *lineDecoder) cut(p []byte, line func([]byte) error) error {
	for {
		head, rest, ended := bytes.Cut(p, []byte("\n"))
		if len(d.held)+len(head) > lineMax {
			return errLineTooLong
		}
		if !ended {
			d.held = append(d.held, head...)
			return nil
		}
		whole := head
		if len(d.held) > 0 {
			d.held = append(d.held, head...)
			whole = d.held
		}
		err := line(bytes.TrimSuffix(whole, []byte("\r")))
		d.held = d.held[:0]
		if err != nil {
			return err
		}
		p = rest
	}
}

func (d *lineDecoder) line(l []byte) error {
	if l = bytes.TrimSpace(l); len(l) == 0 || l[0] != '{' {
		return nil
	}
	return d.object.object(l)
}

func (d *lineDecoder) end() error {
	l := d.held
	d.held = nil
	return d.line(l)
}

// sseDecoder reads server-sent events: the data lines of an event are one object. "[DONE]" is the end.
type sseDecoder struct {
	lines  lineDecoder
	object dialect
	data   []byte
}

func (d *sseDecoder) feed(p []byte) error { return d.lines.cut(p, d.line) }

func (d *sseDecoder) line(l []byte) error {
	if len(l) == 0 {
		return d.event()
	}
	value, ok := bytes.CutPrefix(l, []byte("data:"))
	if !ok {
		return nil // a comment, an id, an event's name
	}
	value = bytes.TrimPrefix(value, []byte(" "))
	if len(d.data)+len(value) > lineMax {
		return errLineTooLong
	}
	if len(d.data) > 0 {
		d.data = append(d.data, '\n')
	}
	d.data = append(d.data, value...)
	return nil
}

func (d *sseDecoder) event() error {
	data := bytes.TrimSpace(d.data)
	d.data = d.data[:0]
	if len(data) == 0 || data[0] != '{' {
		return nil
	}
	return d.object.object(data)
}

func (d *sseDecoder) end() error {
	if len(d.lines.held) > 0 {
		if err := d.line(d.lines.held); err != nil {
			return err
		}
	}
	return d.event()
}

func (d *lineDecoder) missing() string { return d.object.missing() }

func (d *sseDecoder) missing() string { return d.object.missing() }
