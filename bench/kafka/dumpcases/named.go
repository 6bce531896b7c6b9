package dumpcases

import (
	"encoding/binary"
	"maps"
	"slices"

	"segmirror/segment"
)

// named are single logs, each damaged in another way.
func (b *builder) named() error {
	logs := map[string][]byte{}
	for _, more := range []map[string][]byte{shapes(), counts(), codecs(), shortBatches(), controlLogs()} {
		maps.Copy(logs, more)
	}
	g := b.group("named", true)
	for _, name := range sortedKeys(logs) {
		file, err := b.write("named/"+name+"/"+logName, logs[name])
		if err != nil {
			return err
		}
		g.run("--files", file, "--deep-iteration")
		g.run("--print-data-log", "--files", file)
		g.run("--files", file, "--skip-record-metadata", "--print-data-log")
		g.run("--files="+file, "--skip-record-metadata", "--deep-iteration", "--max-bytes", "300")
		g.run("-files", file)
		g.run("--offsets-decoder", "--files", file)
		g.run("--cluster-metadata-decoder", "--files", file)
		g.run("--remote-log-metadata-decoder", "--files", file)
		g.run("--value-decoder-class", "org.apache.kafka.tools.api.IntegerDecoder", "--files", file)
		g.run("--files", file, "--key-decoder-class", "org.apache.kafka.tools.api.LongDecoder")
		g.run("--files", file, "--key-decoder-class", "--max-bytes", "-1")
	}
	return nil
}

// shapes are logs that end early or late, and records of every kind.
func shapes() map[string][]byte {
	all := three()
	second := len(plain(0, 3))
	headers := single(0, 0, segment.Record{Headers: []segment.Header{
		{Key: "h"}, {Key: "", Value: []byte{}}, {Key: "h", Value: []byte("dup")},
	}})
	empty := single(0, 0, segment.Record{Key: []byte{}, Value: []byte{}, Headers: []segment.Header{{}}})
	return map[string][]byte{
		"empty": {}, "few": all[:9], "torn": all[:470], "head": all[:second+20], "three": all,
		"zeros":   slices.Concat(all, make([]byte, 100)),
		"headers": slices.Concat(headers, empty),
		"old":     oldFormats(),
		"gaps":    slices.Concat(plain(3, 2), plain(100, 2), plain(7, 2)),
		"horizon": edited(single(0, 0x40, segment.Record{Key: []byte("k")}), func(x []byte) {
			binary.BigEndian.PutUint64(x[27:], baseTimeMs-1000)
		}),
		"appendtime": edited(plain(0, 2), func(x []byte) {
			x[22] |= 8
			binary.BigEndian.PutUint64(x[27:], 1<<64-1)
		}),
		"huge": edited(plain(0, 1), func(x []byte) {
			binary.BigEndian.PutUint64(x, 1<<63-1)
			binary.BigEndian.PutUint32(x[53:], 1<<31-1)
			binary.BigEndian.PutUint32(x[23:], 1<<31-1)
		}),
	}
}

// counts are batches whose headers contradict their records.
func counts() map[string][]byte {
	count := func(n, delta uint32) []byte {
		return append(edited(single(0, 0, segment.Record{Key: []byte("k")}), func(x []byte) {
			binary.BigEndian.PutUint32(x[57:], n)
			binary.BigEndian.PutUint32(x[23:], delta)
		}), plain(5, 1)...)
	}
	return map[string][]byte{
		"count5": count(5, 4), "count0": count(0, 4), "countminus": count(1<<32-1, 4), "deltaminus": count(1, 1<<32-3),
	}
}

// codecs are batches that are not compressed as they say.
func codecs() map[string][]byte {
	codec := func(n byte, body []byte) []byte {
		h := segment.BatchHeader{
			Attributes: int16(n), RecordsCount: 1, ProducerID: -1, ProducerEpoch: -1, BaseSequence: -1,
		}
		return append(segment.AppendBatch(nil, &h, body), plain(5, 1)...)
	}
	garbage := []byte("this is no compressed data at all")
	good := storedGzip(segment.AppendRecord(nil, 0, 0, &segment.Record{Key: []byte("k")}))
	return map[string][]byte{
		"codec5": codec(5, garbage), "codec7": codec(7, garbage), "gzip": codec(1, garbage), "snappy": codec(2, garbage),
		"lz4": codec(3, garbage), "zstd": codec(4, garbage), "gzipshort": codec(1, garbage[:3]),
		"lz4short": codec(3, garbage[:3]), "gzipempty": codec(1, nil), "snappyempty": codec(2, nil),
		"lz4empty": codec(3, nil), "zstdempty": codec(4, nil), "gzipok": codec(1, good),
		"gziptail": codec(1, slices.Concat(good, garbage)),
	}
}

// shortBatches are batches shorter than their format's header, and of formats that there are not.
func shortBatches() map[string][]byte {
	first, rest := plain(0, 3), three()[len(plain(0, 3)):]
	short := func(length int, magic byte) []byte {
		x := slices.Clone(first)
		binary.BigEndian.PutUint32(x[8:], uint32(length))
		x[16] = magic
		return slices.Concat(x[:length+12], rest)
	}
	whole := len(first) - 12
	return map[string][]byte{
		"short13": short(13, 2), "short14": short(14, 2), "short30": short(30, 2), "short48": short(48, 2),
		"short14v0": short(14, 0), "short14v1": short(14, 1), "short20v1": short(20, 1), "shortend": short(40, 2)[:52],
		"magic3": short(whole, 3), "magic127": short(whole, 127), "magic255": short(whole, 255),
	}
}

// controlLogs are control records of every kind, most of them unreadable.
func controlLogs() map[string][]byte {
	marker := func(kind int16, value ...byte) []byte { return single(0, 0x20, control(kind, value)) }
	return map[string][]byte{
		"transactional": slices.Concat(single(0, 0x30, control(0, []byte{0, 0, 0, 0, 0, 7})),
			single(1, 0x30, control(1, []byte{0, 5, 255, 255, 255, 255}))),
		"controlmixed": slices.Concat(marker(300, 'x'), plain(1, 1)),
		"leaderchange": marker(2, make([]byte, 6)...),
		"nokey":        single(0, 0x20, segment.Record{}),
		"shortkey":     single(0, 0x20, segment.Record{Key: []byte{0, 0, 0}}),
		"minuskey":     single(0, 0x20, segment.Record{Key: []byte{255, 255, 0, 0}}),
		"novalue":      marker(0), "marker1": marker(0, 0), "marker4": marker(1, 0, 0, 1, 2),
		"markerminus": marker(1, 255, 0, 0, 0, 0, 0), "leadernull": marker(2),
	}
}
