package dump

import (
	"errors"
	"fmt"
	"io/fs"
)

// Exception is what Kafka's tool would have thrown. Class is the Java class; Message may be absent, which is not the
// same as empty.
type Exception struct {
	Class      string
	Message    string
	HasMessage bool
}

// Error is how a JVM prints the exception in front of its stack trace.
func (e *Exception) Error() string {
	if !e.HasMessage {
		return e.Class
	}
	return e.Class + ": " + e.Message
}

// message is what getMessage returns, as a Java string concatenation shows it.
func (e *Exception) message() string {
	if !e.HasMessage {
		return "null"
	}
	return e.Message
}

// Java classes of the exceptions that Kafka's tool ends with.
const (
	classCorruptRecord    = "org.apache.kafka.common.errors.CorruptRecordException"
	classCorruptIndex     = "org.apache.kafka.storage.internals.log.CorruptIndexException"
	classInvalidRecord    = "org.apache.kafka.common.InvalidRecordException"
	classKafka            = "org.apache.kafka.common.KafkaException"
	classRuntime          = "java.lang.RuntimeException"
	classIllegalArgument  = "java.lang.IllegalArgumentException"
	classIndexBounds      = "java.lang.IndexOutOfBoundsException"
	classStringBounds     = "java.lang.StringIndexOutOfBoundsException"
	classArrayBounds      = "java.lang.ArrayIndexOutOfBoundsException"
	classNegativeArray    = "java.lang.NegativeArraySizeException"
	classNullPointer      = "java.lang.NullPointerException"
	classNumberFormat     = "java.lang.NumberFormatException"
	classNoSuchElement    = "java.util.NoSuchElementException"
	classBufferUnderflow  = "java.nio.BufferUnderflowException"
	classUnsupported      = "org.apache.kafka.common.errors.UnsupportedVersionException"
	classNoSuchFile       = "java.nio.file.NoSuchFileException"
	classAccessDenied     = "java.nio.file.AccessDeniedException"
	classFileSystem       = "java.nio.file.FileSystemException"
	classFileNotFound     = "java.io.FileNotFoundException"
	classIO               = "java.io.IOException"
	classMetadataParse    = "org.apache.kafka.server.common.serialization.MetadataParseException"
	classUnknownType      = "org.apache.kafka.coordinator.common.runtime.Deserializer$UnknownRecordTypeException"
	classMultipleArgs     = "joptsimple.MultipleArgumentsForOptionException"
	classArgConversion    = "joptsimple.OptionArgumentConversionException"
	classMissingArgument  = "joptsimple.OptionMissingRequiredArgumentException"
	classUnknownOption    = "joptsimple.UnrecognizedOptionException"
	classIllegalSpec      = "joptsimple.IllegalOptionSpecificationException"
	messageRecordStruct   = "Found invalid record structure"
	messageDeclaredSize   = "Incorrect declared batch size, premature EOF reached"
	messageStillRemaining = "Incorrect declared batch size, records still remaining in file"
)

func throwf(class, format string, args ...any) *Exception {
	return &Exception{Class: class, Message: fmt.Sprintf(format, args...), HasMessage: true}
}

// throwNoMessage is an exception without a message.
func throwNoMessage(class string) *Exception { return &Exception{Class: class} }

// throwOpen is what java.nio throws where path cannot be opened or read.
func throwOpen(path string, err error) *Exception {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return throwf(classNoSuchFile, "%s", path)
	case errors.Is(err, fs.ErrPermission):
		return throwf(classAccessDenied, "%s", path)
	}
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return throwf(classFileSystem, "%s: %s", path, pathErr.Err)
	}
	return throwf(classIO, "%s", err)
}

// throwLimit is what java.nio.Buffer.limit throws.
func throwLimit(limit, capacity int) *Exception {
	if limit < 0 {
		return throwf(classIllegalArgument, "newLimit < 0: (%d < 0)", limit)
	}
	return throwf(classIllegalArgument, "newLimit > capacity: (%d > %d)", limit, capacity)
}
