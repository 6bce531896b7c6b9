package kafka

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// TestCommitted_EndsWithWhatIsAborted has an aborted transaction right before the last stable offset, and its marker
// behind that.
func TestCommitted_EndsWithWhatIsAborted(t *testing.T) {
	var log []*kgo.Record
	plain, transactional := kgo.RecordAttrs{}, kgo.NewRecordAttrs(kgo.RecordAttrsOpts{Transactional: true})
	marker := kgo.NewRecordAttrs(kgo.RecordAttrsOpts{Transactional: true, Control: true})
	add := func(producer int64, attrs kgo.RecordAttrs, key []byte) {
		log = append(log, &kgo.Record{Offset: int64(len(log)), ProducerID: producer, Attrs: attrs, Key: key})
	}
	end := func(kind kmsg.ControlRecordKeyType) []byte {
		return (&kmsg.ControlRecordKey{Type: kind}).AppendTo(nil)
	}
	add(-1, plain, nil)
	add(1, transactional, nil)
	add(2, transactional, nil)
	add(1, marker, end(kmsg.ControlRecordKeyTypeCommit))
	add(2, marker, end(kmsg.ControlRecordKeyTypeCommit))
	add(1, transactional, nil) // aborted
	add(2, transactional, nil) // committed behind the last stable offset
	add(3, transactional, nil) // open: the last stable offset
	add(1, marker, end(kmsg.ControlRecordKeyTypeAbort))
	add(2, marker, end(kmsg.ControlRecordKeyTypeCommit))
	var got []int64
	for _, r := range committed(log, 7) {
		got = append(got, r.Offset)
	}
	if want := []int64{0, 1, 2, 6}; !slices.Equal(got, want) {
		t.Errorf("committed are the offsets %v, want %v", got, want)
	}
}
