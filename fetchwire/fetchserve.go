package fetchwire

// A FetchFrame is a fetch response's frame without its records: a server writes them from their file, in place.
//
// Bytes[:Cuts[0]] goes out first, then the records of the first partition, then Bytes[Cuts[0]:Cuts[1]], and so on, and
// at last what is behind the last cut. Both slices are reused by the next Append.
type FetchFrame struct {
	Bytes []byte
	Cuts  []int // one for each partition of the response, in order
}

// Append makes f the frame that answers the request with header h by m, where sizes holds the bytes of records of each
// partition, in order. What m holds as Records is not looked at. No allocation once f's slices are large enough.
func (f *FetchFrame) Append(h RequestHeader, m *FetchResponse, sizes []int32) {
	f.Cuts = f.Cuts[:0]
	f.Bytes = append(f.Bytes[:0], 0, 0, 0, 0)
	f.Bytes = appendResponseHeader(f.Bytes, h.APIKey, h.APIVersion, h.CorrelationID)
	compact, total := flexible(KeyFetch, h.APIVersion), int64(0)
	f.Bytes = m.appendWith(f.Bytes, h.APIVersion, func(dst []byte, _ *FetchPartitionResponse) []byte {
		size := sizes[len(f.Cuts)]
		total += int64(size)
		dst = appendLength(dst, int(size), compact, true)
		f.Cuts = append(f.Cuts, len(dst))
		return dst
	})
	size := int64(len(f.Bytes)) - 4 + total
	if size > 0x7fffffff {
		panic("BUG: a fetch response of more than 2 GiB")
	}
	appendInt32(f.Bytes[:0], int32(size))
}
