package dump

import (
	"bytes"
	"fmt"

	"segmirror/segment"
)

// resync looks behind a place that holds no batch for the next v2 batch whose sum is right, and returns its
// position, -1 where there is none up to the end. Kafka's tool ends at such a place.
//
// If the batches before the place have wrong sums, it is their sizes that led there: the search begins at the first.
func (l *logDump) resync(place int64) int64 {
	from := place
	if l.suspect >= 0 {
		from = l.suspect
	}
	found := l.search(from)
	if found >= 0 {
		l.d.skipped(l.file, from, found)
	}
	return found
}

func (l *logDump) search(from int64) int64 {
	for pos := from + 1; pos+batchOverhead <= l.in.end; {
		if l.d.out.ctx.Err() != nil {
			return -1
		}
		chunk, err := l.in.log.at(pos, min(l.in.end-pos, windowSize))
		if err != nil || len(chunk) < batchOverhead {
			return -1
		}
		next := int64(len(chunk) - magicPos)
		for at := 0; at+magicPos < len(chunk); at++ {
			i := bytes.IndexByte(chunk[at+magicPos:], 2)
			if i < 0 {
				break
			}
			at += i
			if candidate := pos + int64(at); l.wholeBatch(candidate) {
				return candidate
			}
			// The candidate may have taken the window elsewhere.
			if chunk, err = l.in.log.at(pos, min(l.in.end-pos, windowSize)); err != nil {
				return -1
			}
		}
		pos += max(next, 1)
	}
	return -1
}

// wholeBatch says whether a batch with a right sum stands at pos.
func (l *logDump) wholeBatch(pos int64) bool {
	b, ok, thrown := l.in.next(pos)
	if thrown != nil || !ok || b.magic != 2 || b.total() < batchOverhead || b.offset < 0 {
		return false
	}
	header, thrown := b.header()
	if thrown != nil || !plausible(header) {
		return false
	}
	full, thrown := b.full()
	return thrown == nil && valid(full)
}

// plausible keeps the sum from being made over what is no header.
func plausible(header segment.Batch) bool {
	const reserved = -1 << 7 // attribute bits that have no meaning
	return header.Attributes()&reserved == 0 && header.LastOffsetDelta() >= 0 && header.RecordsCount() >= 0 &&
		header.ProducerID() >= -1 && header.LeaderEpoch() >= -1
}

// skipped reports the bytes that --continue went over.
func (d *Dumper) skipped(file javaFile, from, to int64) {
	if from == to {
		return
	}
	d.faults++
	d.report(fmt.Sprintf("segmirror: dump-log: %s, position %d: %d bytes skipped to the next batch with a right sum",
		file.path, from, to-from))
}
