package dump

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"segmirror/segment"
)

// ErrFaults says that the dump is not what it should be: Kafka's tool would have ended with an exception, or
// --continue went on behind one. What it was stands on stderr.
var ErrFaults = errors.New("faults in the files")

// Dumper is one run over the files of a command line.
type Dumper struct {
	opts    *Options
	out     output
	stderr  io.Writer
	reports reports
	parser  parser
	unpack  *segment.Decompressor
	ahead   *unpackAhead
	control *tables // of control records, nil until there is one
	faults  int
}

// Run prints the files that the options name to stdout, and what is wrong with them to stderr.
//
// text is the charset of stdout and stderr. ErrFaults says that the exit code is 1 and why stands on stderr; other
// errors are those of stdout and of ctx, which ends the run.
func Run(ctx context.Context, o *Options, stdout, stderr io.Writer, text Charset) error {
	limit, thrown := o.expandLimit()
	if thrown != nil {
		return &UsageError{Text: thrown.Message}
	}
	d := &Dumper{
		opts: o, stderr: stderr, unpack: segment.NewDecompressor(limit), ahead: newUnpackAhead(limit),
		out: output{w: stdout, text: text, ctx: ctx},
	}
	defer d.unpack.Close()
	defer d.ahead.close()
	for _, name := range o.fileNames() {
		if err := d.file(newJavaFile(name)); err != nil {
			return err
		}
	}
	d.out.flush()
	if d.out.err != nil {
		return d.out.err
	}
	if err := d.reports.write(stderr, text); err != nil {
		return err
	}
	if d.faults > 0 {
		d.report(fmt.Sprintf("segmirror: dump-log: %d faults that kafka-dump-log would have stopped at or not shown",
			d.faults))
		return ErrFaults
	}
	return nil
}

// file prints one file, by what stands behind the last dot of its name.
func (d *Dumper) file(file javaFile) error {
	path := string(d.out.text.appendText(nil, []byte(file.path)))
	d.out.line("Dumping " + path)
	name := file.name()
	suffix := name[max(strings.LastIndexByte(name, '.'), 0):]
	var thrown *Exception
	switch suffix {
	case ".log", ".checkpoint":
		thrown = d.dumpLog(file)
	case ".index":
		thrown = d.dumpIndex(file)
	case ".timeindex":
		thrown = d.dumpTimeIndex(file)
	case ".snapshot":
		thrown = d.dumpSnapshot(file)
	case ".txnindex":
		thrown = d.dumpTxnIndex(file)
	default:
		d.report("Ignoring unknown file " + path)
	}
	if thrown != nil && !d.fault(file, -1, thrown) {
		d.out.flush()
		fmt.Fprintf(d.stderr, "Exception in thread \"main\" %s\n", thrown.Error())
		fmt.Fprintf(d.stderr, "segmirror: dump-log: kafka-dump-log ends here, in %s; --continue goes on\n", path)
		return errors.Join(d.out.err, ErrFaults)
	}
	return d.out.err
}

// report writes a line to stderr, behind what is on stdout so far.
func (d *Dumper) report(line string) {
	d.out.flush()
	fmt.Fprintln(d.stderr, line)
}

// fault reports an exception with --continue. Without it, it returns false. pos is where in the file, -1 if that is
// not known.
func (d *Dumper) fault(file javaFile, pos int64, thrown *Exception) bool {
	if !d.opts.goOn {
		return false
	}
	d.faults++
	if n := len(d.out.buf); n > 0 && d.out.buf[n-1] != '\n' {
		d.out.buf = append(d.out.buf, '\n')
	}
	at := ""
	if pos >= 0 {
		at = fmt.Sprintf(", position %d", pos)
	}
	d.report(fmt.Sprintf("segmirror: dump-log: %s%s: %s", file.path, at, thrown.Error()))
	return true
}

// invalid reports a batch whose sum is wrong with --continue.
func (d *Dumper) invalid(file javaFile, b *batch, full segment.Batch) {
	if !d.opts.goOn {
		return
	}
	d.faults++
	if len(full) < batchOverhead && b.magic >= 2 {
		d.report(fmt.Sprintf("segmirror: dump-log: %s, position %d: batch of %d bytes, shorter than its header",
			file.path, b.pos, len(full)))
		return
	}
	d.report(fmt.Sprintf("segmirror: dump-log: %s, position %d: stored CRC %d, computed %d",
		file.path, b.pos, full.CRC(), full.ComputeCRC()))
}
