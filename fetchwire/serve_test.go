package fetchwire

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestRequestFrame_IsWhatFranzGoSends(t *testing.T) {
	client := "a client"
	formatter := kmsg.NewRequestFormatter(kmsg.FormatterClientID(client))
	for _, api := range APIs() {
		for version := api.Min; version <= api.KafkaMax; version++ {
			req := kmsg.RequestForKey(api.Key)
			req.SetVersion(version)
			frame := formatter.AppendRequest(nil, req, 77)
			h := RequestHeader{APIKey: api.Key, APIVersion: version, CorrelationID: 77, ClientID: &client}
			ours := finishFrame(req.AppendTo(h.AppendTo([]byte{0, 0, 0, 0})), 0)
			if !bytes.Equal(ours, frame) {
				t.Errorf("%s v%d: %x, franz-go %x", api.Name, version, ours, frame)
			}
			buf, err := ReadRequestFrame(bytes.NewReader(frame), nil, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			got, body, err := DecodeRequestHeader(buf)
			if err != nil || got.APIKey != api.Key || got.APIVersion != version || got.CorrelationID != 77 ||
				deref(got.ClientID) != client || !bytes.Equal(body, req.AppendTo(nil)) {
				t.Errorf("%s v%d: %+v, %x, %v", api.Name, version, got, body, err)
			}
		}
	}
}

func TestReadRequestFrame_RefusesWhatIsNoRequest(t *testing.T) {
	for name, tc := range map[string]struct {
		bytes []byte
		want  error
	}{
		"nothing":         {nil, io.EOF},
		"half a size":     {[]byte{0, 0}, io.ErrUnexpectedEOF},
		"half a frame":    {[]byte{0, 0, 0, 20, 1, 2, 3}, io.ErrUnexpectedEOF},
		"too small":       {[]byte{0, 0, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9}, ErrMalformed},
		"negative":        {[]byte{0xff, 0, 0, 0}, ErrMalformed},
		"above the limit": {[]byte{0, 0x10, 0, 1}, ErrFrameTooLarge},
	} {
		if _, err := ReadRequestFrame(bytes.NewReader(tc.bytes), nil, 1<<20); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
	for protocol, b := range map[string]string{"TLS": "\x16\x03\x01\x02\x00\x01", "HTTP": "GET / HTTP/1.1\r\n"} {
		_, err := ReadRequestFrame(bytes.NewReader([]byte(b)), nil, 1<<20)
		var foreign *NotKafkaError
		if !errors.As(err, &foreign) || foreign.Protocol != protocol {
			t.Errorf("%s: %v", protocol, err)
		}
	}
	if n := allocated(func() {
		_, _ = ReadRequestFrame(bytes.NewReader([]byte{0x3f, 0, 0, 0, 1}), nil, 1<<30)
	}); n > 1<<20 {
		t.Errorf("a size alone allocated %d bytes", n)
	}
}

func TestReadRequestFrame_ReusesItsBuffer(t *testing.T) {
	frame := append([]byte{0, 0, 0, 40}, make([]byte, 40)...)
	buf := make([]byte, 0, 64)
	r := bytes.NewReader(frame)
	if n := fewestAllocs(50, func() {
		r.Reset(frame)
		var err error
		if buf, err = ReadRequestFrame(r, buf, 100); err != nil || len(buf) != 40 {
			t.Fatal(len(buf), err)
		}
	}); n > 1 { // the size's four bytes escape through io.Reader
		t.Errorf("%v allocations for each request", n)
	}
}

func TestAnswerApiVersions_AnswersFutureClientsInVersionZero(t *testing.T) {
	offer := []APIVersion{{KeyFetch, 4, 17}}
	for _, version := range []int16{0, 3, 4, 5, 99, -1} {
		h := RequestHeader{APIKey: KeyApiVersions, APIVersion: version, CorrelationID: 5}
		frame := AnswerApiVersions(nil, h, offer)
		resp := kmsg.NewPtrApiVersionsResponse()
		known := version >= 0 && version <= 4
		if known {
			resp.Version = version
		}
		if err := resp.ReadFrom(frame[8:]); err != nil {
			t.Fatalf("v%d: %v", version, err)
		}
		if (resp.ErrorCode == 0) != known || len(resp.ApiKeys) != 1 || resp.ApiKeys[0].MaxVersion != 17 {
			t.Errorf("v%d: %+v", version, resp)
		}
	}
}

// FuzzRequestHeader checks that a header read from a client is what it encodes again to, bytes unknown to us aside.
func FuzzRequestHeader(f *testing.F) {
	client := "c"
	for _, api := range APIs() {
		h := RequestHeader{APIKey: api.Key, APIVersion: api.Max, CorrelationID: 1, ClientID: &client}
		f.Add(append(h.AppendTo(nil), 1, 2, 3))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		h, body, err := DecodeRequestHeader(frame)
		if err != nil {
			var decode *DecodeError
			if !errors.As(err, &decode) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if !bytes.HasSuffix(frame, body) {
			t.Fatal("the body is not the frame's end")
		}
		again, rest, err := DecodeRequestHeader(append(h.AppendTo(nil), body...))
		if err != nil || !bytes.Equal(rest, body) || again.APIKey != h.APIKey || again.APIVersion != h.APIVersion ||
			again.CorrelationID != h.CorrelationID || deref(again.ClientID) != deref(h.ClientID) {
			t.Fatalf("%+v became %+v, %v", h, again, err)
		}
	})
}
