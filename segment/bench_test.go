package segment

import (
	"encoding/binary"
	"fmt"
	"io"
	"testing"
)

// benchBatches is n batches of about size bytes, offsets of one width.
func benchBatches(n, size int) []byte {
	var in []byte
	for i := range n {
		s := data(int64(10000+i), int64(10000+i))
		s.value = size - 80
		in = append(in, s.bytes()...)
	}
	return in
}

func BenchmarkLogAppend(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10, 128 << 10, 1 << 20} {
		for _, total := range []int{1 << 20, 8 << 20} {
			b.Run(fmt.Sprintf("batch=%dKiB/batches=%d", size>>10, total/size), func(b *testing.B) {
				p := testParams(b)
				p.cfg = DefaultConfig()
				l := mustOpen(b, p)
				n := total / size
				in := benchBatches(n, size)
				each := len(in) / n
				offset := int64(0)
				r := &sliceReader{}
				b.SetBytes(int64(len(in)))
				b.ReportAllocs()
				for b.Loop() {
					for i := range n {
						binary.BigEndian.PutUint64(in[i*each:], uint64(offset))
						offset++
					}
					r.b = in
					if _, err := l.AppendFrom(r, len(in), -1); err != nil {
						b.Fatal(err)
					}
					if l.Segments() > 1 { // keep the disk small
						b.StopTimer()
						if _, err := l.AdvanceLogStart(l.LogEndOffset()); err != nil {
							b.Fatal(err)
						}
						b.StartTimer()
					}
				}
			})
		}
	}
}

func BenchmarkAnalyze(b *testing.B) {
	for _, size := range []int{1 << 10, 16 << 10, 128 << 10} {
		b.Run(fmt.Sprintf("batch=%dKiB", size>>10), func(b *testing.B) {
			in := benchBatches((1<<20)/size, size)
			var m batchMeta
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				it := NewBatchIterator(in)
				for it.Next() {
					if err := it.Batch().validate(); err != nil {
						b.Fatal(err)
					}
					if err := m.read(it.Batch(), int64(it.Pos())); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func BenchmarkRecover(b *testing.B) {
	for _, size := range []int{16 << 10, 128 << 10} {
		b.Run(fmt.Sprintf("batch=%dKiB", size>>10), func(b *testing.B) {
			p := testParams(b)
			p.cfg = DefaultConfig()
			l := mustOpen(b, p)
			var n int64
			for base := int64(100); n < 256<<20; base += 10 {
				s := data(base, base)
				s.value = size - 80
				info := mustAppend(b, l, s)
				n += int64(info.Bytes)
			}
			p.clean = false
			crash(b, l)
			b.SetBytes(n)
			b.ReportAllocs()
			for b.Loop() {
				l, report, err := openLog(p)
				if err != nil || len(report.Cuts) > 0 {
					b.Fatal(err, report)
				}
				crash(b, l)
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	p := testParams(b)
	p.cfg = DefaultConfig()
	l := mustOpen(b, p)
	in := benchBatches(900, 16<<10)
	if _, err := l.AppendAsFollower(in, -1); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(1 << 20)
	b.ReportAllocs()
	for b.Loop() {
		s, err := l.Read(400, 1<<20, ReadLogEnd)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.WriteTo(io.Discard); err != nil {
			b.Fatal(err)
		}
		if err := s.Release(); err != nil {
			b.Fatal(err)
		}
	}
}
