package dump

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

const (
	txnEntrySize  = 34
	txnVersionMax = 0
)

// dumpTxnIndex prints a .txnindex file, nothing where there is none. A fragment at its end is no entry.
//
// Kafka reads all entries before it prints one, and takes the first of the version's two bytes for the version.
// Kafka: DumpLogSegments.dumpTxnIndex.
func (d *Dumper) dumpTxnIndex(file javaFile) *Exception {
	name := file.name()
	if _, thrown := parseLong(name[:strings.IndexByte(name, '.')]); thrown != nil {
		return thrown
	}
	f, err := os.Open(file.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return throwOpen(file.path, err)
	}
	defer f.Close()
	if thrown := d.txnEntries(f, file, func([]byte) {}); thrown != nil {
		return thrown
	}
	return d.txnEntries(f, file, d.txnEntry)
}

func (d *Dumper) txnEntries(f *os.File, file javaFile, visit func(entry []byte)) *Exception {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return throwf(classIO, "%s", err)
	}
	in := bufio.NewReaderSize(f, smallWindow)
	var entry [txnEntrySize]byte
	for {
		_, err := io.ReadFull(in, entry[:])
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return throwTxnRead(file, err)
		}
		if version := int8(entry[0]); version > txnVersionMax {
			return throwf(classKafka, "Unexpected aborted transaction version %d in transaction index %s, "+
				"current version is %d", version, file.absolute(), txnVersionMax)
		}
		visit(entry[:])
	}
}

func throwTxnRead(file javaFile, err error) *Exception {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) && pathErr.Err.Error() == "is a directory" {
		return throwf(classFileSystem, "%s: Is a directory", file.path)
	}
	return throwf(classKafka, "Failed to read from the transaction index %s", file.absolute())
}

func (d *Dumper) txnEntry(entry []byte) {
	out := &d.out
	dst := strconv.AppendInt(append(out.buf, "version: "...), int64(int8(entry[0])), 10)
	for i, name := range []string{" producerId: ", " firstOffset: ", " lastOffset: ", " lastStableOffset: "} {
		dst = strconv.AppendInt(append(dst, name...), int64be(entry[2+8*i:]), 10)
	}
	out.buf = append(dst, '\n')
	out.spill()
}
