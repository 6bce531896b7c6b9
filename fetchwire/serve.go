package fetchwire

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// ReadRequestFrame reads one request frame, without its size field, into buf's memory, growing it only as bytes
// arrive. The returned slice is buf or its successor: hand it in again next time.
//
// Errors: io.EOF at a clean end, io.ErrUnexpectedEOF inside a frame, ErrFrameTooLarge above limit, ErrMalformed below
// the smallest request, *NotKafkaError when a client speaks TLS or HTTP. Any goroutine, one at a time for each r.
func ReadRequestFrame(r io.Reader, buf []byte, limit int32) ([]byte, error) {
	var head [4]byte
	if n, err := io.ReadFull(r, head[:]); err != nil {
		if n > 0 {
			return buf, io.ErrUnexpectedEOF
		}
		return buf, err
	}
	if err := foreignClient(head); err != nil {
		return buf, err
	}
	size := int32(binary.BigEndian.Uint32(head[:]))
	if size < minRequestBytes {
		return buf, fmt.Errorf("%w: request of %d bytes", ErrMalformed, size)
	}
	if size > limit {
		return buf, fmt.Errorf("%w: %d bytes announced, limit %d", ErrFrameTooLarge, size, limit)
	}
	f := frameReader{src: r, size: int64(size), left: int64(size)}
	return f.readAll(buf)
}

// minRequestBytes is the size of a request header with a null client id.
const minRequestBytes = 2 + 2 + 4 + 2

// foreignClient recognises a TLS handshake and the verbs of HTTP.
func foreignClient(head [4]byte) error {
	if head[0] == 0x16 && head[1] == 3 && head[2] <= 4 {
		return &NotKafkaError{Addr: "client", Protocol: "TLS", Detail: "this listener is plaintext"}
	}
	for _, verb := range [...]string{"GET ", "POST", "PUT ", "HEAD", "OPTI", "DELE", "CONN", "PRI "} {
		if strings.HasPrefix(string(head[:]), verb) {
			return &NotKafkaError{Addr: "client", Protocol: "HTTP", Detail: "this is a Kafka listener"}
		}
	}
	return nil
}

// A Response is a body that AppendResponse can frame: any response type of this package.
type Response interface {
	AppendTo(dst []byte, version int16) []byte
}

// AppendResponse appends a whole response frame, its size field included, that answers the request with header h.
//
// For ApiVersions in a version this package does not speak, write the response as version 0: see AnswerApiVersions.
// Any goroutine.
func AppendResponse(dst []byte, h RequestHeader, resp Response) []byte {
	start := len(dst)
	dst = append(dst, 0, 0, 0, 0)
	dst = appendResponseHeader(dst, h.APIKey, h.APIVersion, h.CorrelationID)
	return finishFrame(resp.AppendTo(dst, h.APIVersion), start)
}

// AnswerApiVersions appends the frame that answers an ApiVersions request of any version with the APIs offered: an
// unknown version is answered in version 0 with UNSUPPORTED_VERSION and the list. KIP-511. Any goroutine.
func AnswerApiVersions(dst []byte, h RequestHeader, offered []APIVersion) []byte {
	resp := ApiVersionsResponse{APIKeys: offered, FinalizedFeaturesEpoch: -1}
	api, _ := LookupAPI(KeyApiVersions)
	if h.APIVersion < api.Min || h.APIVersion > api.Max {
		h.APIVersion = 0
		resp.ErrorCode = CodeUnsupportedVersion
	}
	return AppendResponse(dst, h, &resp)
}
