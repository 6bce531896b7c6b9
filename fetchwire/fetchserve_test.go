package fetchwire

import (
	"bytes"
	"testing"
)

func TestFetchFrame_WithItsRecordsIsTheWholeResponse(t *testing.T) {
	api, _ := LookupAPI(KeyFetch)
	var f FetchFrame
	for v := api.Min; v <= api.Max; v++ {
		m := FetchResponse{ThrottleMs: 3, SessionID: 9}
		var sizes []int32
		var records [][]byte
		for i := range 3 {
			topic := FetchTopicResponse{Topic: "t", TopicID: [16]byte{byte(i)}}
			for j := range 2 {
				p := NewFetchPartitionResponse(int32(j))
				p.Records = bytes.Repeat([]byte{byte(i)}, i*100+j)
				topic.Partitions = append(topic.Partitions, p)
				sizes, records = append(sizes, int32(len(p.Records))), append(records, p.Records)
			}
			m.Topics = append(m.Topics, topic)
		}
		h := RequestHeader{APIKey: KeyFetch, APIVersion: v, CorrelationID: 5}
		f.Append(h, &m, sizes)
		var got []byte
		from := 0
		for i, cut := range f.Cuts {
			got = append(append(got, f.Bytes[from:cut]...), records[i]...)
			from = cut
		}
		got = append(got, f.Bytes[from:]...)
		if want := AppendResponse(nil, h, &m); !bytes.Equal(got, want) {
			t.Errorf("v%d: %x, want %x", v, got, want)
		}
	}
}
