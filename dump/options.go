package dump

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Options is a parsed command line.
type Options struct {
	files       string
	print       bool
	deep        bool
	verifyOnly  bool
	sanityOnly  bool
	skipRecord  bool
	help        bool
	version     bool
	goOn        bool
	noArguments bool

	decoders decoders

	keyDecoder   argument
	valueDecoder argument
	maxBytes     argument
	maxMessage   argument
	maxExpanded  argument
}

// decoders are the topics whose records may be read.
type decoders struct{ offsets, transactions, clusterMetadata, remoteMetadata, shareState, mirrorState bool }

// argument is the argument of an option: the option's name, how often it was given, and with which arguments.
type argument struct {
	name   string
	given  bool
	values []string
}

const (
	stringDecoder      = "org.apache.kafka.tools.api.StringDecoder"
	defaultMaxMessage  = 5 << 20
	defaultMaxExpanded = 256 << 20
)

// ErrHelp and ErrVersion say that the command line asks for the usage or the version and for nothing else.
var (
	ErrHelp    = errors.New("help")
	ErrVersion = errors.New("version")
)

// UsageError is a command line that cannot be run. Kafka's tool prints its usage, too.
type UsageError struct{ Text string }

// Error is the text.
func (e *UsageError) Error() string { return e.Text }

// option is one option: a switch where on is set, else an option with an argument, which may be left out or not.
type option struct {
	name     string
	on       *bool
	argument *argument
	optional bool
	describe string
}

func (o *Options) options() []option {
	return []option{
		{name: "files", describe: "F1,F2,..  files to print, separated by commas (required)"},
		{name: "deep-iteration", on: &o.deep, describe: "print a line for each record, too"},
		{name: "print-data-log", on: &o.print, describe: "print keys and values of the records, too"},
		{
			name: "key-decoder-class", argument: &o.keyDecoder, optional: true,
			describe: "[CLASS]  how to print keys, a Kafka decoder of org.apache.kafka.tools.api: StringDecoder (default),\n" +
				"IntegerDecoder, LongDecoder, DefaultDecoder (bytes, in hexadecimal)",
		},
		{name: "value-decoder-class", argument: &o.valueDecoder, optional: true, describe: "[CLASS]  the same for values"},
		{
			name: "offsets-decoder", on: &o.decoders.offsets,
			describe: "read records as those of __consumer_offsets",
		},
		{
			name: "transaction-log-decoder", on: &o.decoders.transactions,
			describe: "read records as those of __transaction_state",
		},
		{
			name: "cluster-metadata-decoder", on: &o.decoders.clusterMetadata,
			describe: "read records as those of __cluster_metadata",
		},
		{
			name: "remote-log-metadata-decoder", on: &o.decoders.remoteMetadata,
			describe: "read records as those of __remote_log_metadata",
		},
		{
			name: "share-group-state-decoder", on: &o.decoders.shareState,
			describe: "read records as those of __share_group_state",
		},
		{name: "mirror-state-decoder", on: &o.decoders.mirrorState, describe: "read records as those of __mirror_state"},
		{
			name: "skip-record-metadata", on: &o.skipRecord,
			describe: "print only keys and values of records, nothing of control records",
		},
		{
			name: "max-bytes", argument: &o.maxBytes,
			describe: "N  look at no more than the first N bytes of a log",
		},
		{
			name: "max-message-size", argument: &o.maxMessage,
			describe: "N  bytes of the log that are looked at for an index entry, default 5242880",
		},
		{name: "verify-index-only", on: &o.verifyOnly, describe: "check indexes against the log without printing them"},
		{name: "index-sanity-check", on: &o.sanityOnly, describe: "check indexes as a broker does when it starts"},
		{
			name: "continue", on: &o.goOn,
			describe: "go on behind what kafka-dump-log would stop at; exit 1 if there was any",
		},
		{
			name: "max-decompressed-bytes", argument: &o.maxExpanded,
			describe: "N  what a batch may take when decompressed, default 268435456",
		},
		{name: "help", on: &o.help, describe: "print this"},
		{name: "version", on: &o.version, describe: "print the version"},
	}
}

// WriteUsage writes what the options are.
func WriteUsage(w io.Writer) error {
	var b strings.Builder
	b.WriteString("Prints log segments, snapshots, indexes and producer state as kafka-dump-log does.\n\n")
	for _, f := range (&Options{}).options() {
		describe := strings.ReplaceAll(f.describe, "\n", "\n"+strings.Repeat(" ", 32))
		fmt.Fprintf(&b, "  --%-27s %s\n", f.name, describe)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Parse reads a command line as kafka-dump-log's parser does: options are written in full, with one dash or two,
// their argument follows or stands behind an equals sign.
//
// The error is an *Exception where Kafka's tool throws, a *UsageError where it prints its usage, ErrHelp or
// ErrVersion.
func Parse(args []string) (*Options, error) {
	o := &Options{noArguments: len(args) == 0}
	files := argument{name: "files"}
	byName := map[string]option{}
	for _, f := range o.options() {
		if f.argument != nil {
			f.argument.name = f.name
		}
		if f.name == files.name {
			f.argument = &files
		}
		byName[f.name] = f
	}
	if err := parseArgs(args, byName); err != nil {
		return nil, err
	}
	switch {
	case o.noArguments || o.help:
		return nil, ErrHelp
	case o.version:
		return nil, ErrVersion
	case !files.given:
		return nil, &UsageError{Text: `Missing required argument "[files]"`}
	}
	var thrown *Exception
	if o.files, thrown = files.one(""); thrown != nil {
		return nil, thrown
	}
	for _, decoder := range []*argument{&o.keyDecoder, &o.valueDecoder} {
		for _, class := range decoder.values {
			if _, err := decoderOf(class, UTF8); err != nil {
				return nil, &UsageError{Text: fmt.Sprintf("--%s: %s", decoder.name, err)}
			}
		}
	}
	return o, nil
}

func parseArgs(args []string, byName map[string]option) error {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		if arg == "--" {
			return nil
		}
		if !looksLikeOption(arg) {
			continue
		}
		name, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-"), "=")
		f, known := byName[name]
		if !known {
			return unrecognized(arg, name)
		}
		if f.on != nil {
			*f.on = true
			continue
		}
		f.argument.given = true
		switch {
		case value != "":
		case f.optional && (len(args) == 0 || looksLikeOption(args[0])):
			continue
		case len(args) == 0:
			return throwf(classMissingArgument, "Option %s requires an argument", name)
		default:
			value, args = args[0], args[1:]
		}
		f.argument.values = append(f.argument.values, value)
	}
	return nil
}

// unrecognized names an unknown option; behind one dash, the parser takes the letters for options.
func unrecognized(arg, name string) *Exception {
	if !strings.HasPrefix(arg, "--") {
		first := []rune(name)[0]
		if !(first >= 'a' && first <= 'z' || first >= 'A' && first <= 'Z' || first >= '0' && first <= '9') {
			return throwf(classIllegalSpec, "%c is not a legal option character", first)
		}
		name = string(first)
	}
	return throwf(classUnknownOption, "%s is not a recognized option", name)
}

func looksLikeOption(arg string) bool { return len(arg) > 1 && arg[0] == '-' }

// one returns the argument, or what stands for it where none was given.
func (a *argument) one(otherwise string) (string, *Exception) {
	switch len(a.values) {
	case 0:
		return otherwise, nil
	case 1:
		return a.values[0], nil
	default:
		return "", throwf(classMultipleArgs, "Found multiple arguments for option %s, but you asked for only one", a.name)
	}
}

// integer returns the argument as a Java int.
func (a *argument) integer(otherwise int32) (int32, *Exception) {
	text, thrown := a.one("")
	if thrown != nil {
		return 0, thrown
	}
	if len(a.values) == 0 {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, throwf(classArgConversion, "Cannot parse argument '%s' of option %s", text, a.name)
	}
	return int32(n), nil
}

// fileNames are the files asked for, as Java's String.split makes them.
func (o *Options) fileNames() []string {
	if o.files == "" {
		return []string{""}
	}
	names := strings.Split(o.files, ",")
	for len(names) > 0 && names[len(names)-1] == "" {
		names = names[:len(names)-1]
	}
	return names
}

// contents says whether keys and values are printed.
func (o *Options) contents() bool {
	return o.print || o.decoders != (decoders{}) || o.valueDecoder.given || o.keyDecoder.given
}

func (o *Options) deepIteration() bool { return o.deep || o.contents() }

// expandLimit is what a batch may take when it is decompressed, in bytes.
func (o *Options) expandLimit() (int, *Exception) {
	n, thrown := o.maxExpanded.integer(defaultMaxExpanded)
	return int(max(n, 1)), thrown
}

// noMaxBytes is the value of --max-bytes that means all of the file.
const noMaxBytes = math.MaxInt32
