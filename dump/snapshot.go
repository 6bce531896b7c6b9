package dump

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"strconv"
)

// A .snapshot file, big-endian: int16 version, uint32 CRC-32C of what follows, int32 count, and entries of 46 bytes.
//
//	pos size field
//	  0    8 producerId             int64
//	  8    2 producerEpoch          int16
//	 10    4 lastSequence           int32
//	 14    8 lastOffset             int64   below 0: no batch
//	 22    4 offsetDelta            int32
//	 26    8 timestamp              int64
//	 34    4 coordinatorEpoch       int32
//	 38    8 currentTxnFirstOffset  int64   below 0: none
const (
	snapshotHeaderSize = 10
	snapshotCRCEnd     = 6
	producerEntrySize  = 46
	snapshotVersion    = 1
)

// dumpSnapshot prints a producer state snapshot. One that is corrupt is reported on stderr, and is no reason to stop.
// Kafka: DumpLogSegments.dumpProducerIdSnapshot, ProducerStateManager.readSnapshot.
func (d *Dumper) dumpSnapshot(file javaFile) *Exception {
	f, err := os.Open(file.path)
	if err != nil {
		return throwOpen(file.path, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return throwOpen(file.path, err)
	}
	if info.IsDir() {
		return throwf(classIO, "Is a directory")
	}
	var header [snapshotHeaderSize]byte
	n, err := f.ReadAt(header[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return throwOpen(file.path, err)
	}
	corrupt := snapshotFault(header[:n], info.Size()-snapshotHeaderSize)
	if corrupt == "" {
		corrupt, err = snapshotSum(f, int64(snapshotCRCEnd), header[:])
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return throwOpen(file.path, err)
	}
	if corrupt != "" {
		d.report(corrupt)
		if d.opts.goOn {
			d.faults++
		}
		return nil
	}
	in := bufio.NewReaderSize(io.NewSectionReader(f, snapshotHeaderSize, math.MaxInt64-snapshotHeaderSize), smallWindow)
	var entry [producerEntrySize]byte
	for range int32be(header[snapshotCRCEnd:]) {
		if _, err := io.ReadFull(in, entry[:]); err != nil {
			return throwf(classIO, "%s changed while it was read: %s", file.path, err)
		}
		d.producerEntry(entry[:])
	}
	return nil
}

// snapshotFault checks a header against the bytes that follow it, and returns Kafka's words for what is wrong.
func snapshotFault(header []byte, following int64) string {
	const failed = "Snapshot failed schema validation: "
	if len(header) < 2 {
		return failed + "null"
	}
	if version := int16be(header); version != snapshotVersion {
		return fmt.Sprintf("%sSnapshot contained an unknown file version %d", failed, version)
	}
	if len(header) < snapshotHeaderSize {
		return failed + "null"
	}
	count := int64(int32be(header[snapshotCRCEnd:]))
	switch {
	case count < 0:
		return failed + "non-nullable field producerEntries was serialized as null"
	case count > following:
		return fmt.Sprintf("%sTried to allocate a collection of size %d, but there are only %d bytes remaining.",
			failed, count, following)
	case count*producerEntrySize > following:
		return failed + "null"
	}
	return ""
}

// snapshotSum compares the sum in the header with that of the file from a position on.
func snapshotSum(f *os.File, from int64, header []byte) (string, error) {
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	if _, err := io.Copy(sum, io.NewSectionReader(f, from, math.MaxInt64-from)); err != nil {
		return "", err
	}
	stored := uint32(int32be(header[2:]))
	if stored != sum.Sum32() {
		return fmt.Sprintf("Snapshot is corrupt (CRC is no longer valid). Stored crc: %d. Computed crc: %d",
			stored, sum.Sum32()), nil
	}
	return "", nil
}

func (d *Dumper) producerEntry(e []byte) {
	out := &d.out
	epoch, lastSequence, lastOffset, delta := int16be(e[8:]), int32be(e[10:]), int64be(e[14:]), int32be(e[22:])
	timestampMs, firstOffset := int64be(e[26:]), int64be(e[38:])
	dst := strconv.AppendInt(append(out.buf, "producerId: "...), int64be(e), 10)
	dst = strconv.AppendInt(append(dst, " producerEpoch: "...), int64(epoch), 10)
	dst = strconv.AppendInt(append(dst, " coordinatorEpoch: "...), int64(int32be(e[34:])), 10)
	if dst = append(dst, " currentTxnFirstOffset: "...); firstOffset >= 0 {
		dst = append(strconv.AppendInt(append(dst, "OptionalLong["...), firstOffset, 10), ']')
	} else {
		dst = append(dst, "OptionalLong.empty"...)
	}
	dst = strconv.AppendInt(append(dst, " lastTimestamp: "...), timestampMs, 10)
	if lastOffset >= 0 {
		dst = strconv.AppendInt(append(dst, " firstSequence: "...), int64(subtractSequence(lastSequence, delta)), 10)
		dst = strconv.AppendInt(append(dst, " lastSequence: "...), int64(lastSequence), 10)
		dst = strconv.AppendInt(append(dst, " lastOffset: "...), lastOffset, 10)
		dst = strconv.AppendInt(append(dst, " offsetDelta: "...), int64(delta), 10)
		dst = strconv.AppendInt(append(dst, " timestamp: "...), timestampMs, 10)
	}
	out.buf = append(dst, '\n')
	out.spill()
}

// subtractSequence goes n sequence numbers back. Kafka: DefaultRecordBatch.decrementSequence.
func subtractSequence(sequence, n int32) int32 {
	if sequence < n {
		return math.MaxInt32 - (n - sequence) + 1
	}
	return sequence - n
}
