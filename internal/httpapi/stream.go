package httpapi

import (
	"log/slog"
	"mime"
	"net/http"
	"strings"
	"time"
)

// A stream is an answer of any length. The server's time-out of an answer is too
// short for it: each part of it has that time instead.
type stream struct {
	h       *Handler
	w       http.ResponseWriter
	control *http.ResponseController
}

// stream begins one of that media type.
func (h *Handler) stream(w http.ResponseWriter, kind string) *stream {
	w.Header().Set("Content-Type", kind)
	return &stream{h, w, http.NewResponseController(w)}
}

// Write writes a part.
func (s *stream) Write(p []byte) (int, error) {
	_ = s.control.SetWriteDeadline(time.Unix(0, s.h.o.Clock.Now().Wall).Add(exchange)) // what has no deadlines needs none
	return s.w.Write(p)
}

// broken ends an answer of which nothing was sent yet with a problem, any other
// so that the client sees it broke off.
func (s *stream) broken(r *request, err error) error {
	if rec, ok := s.w.(*recorder); ok && rec.status == 0 {
		s.w.Header().Del("Content-Disposition")
		return err
	}
	if r.Context().Err() == nil {
		s.h.o.Logger.Error("an answer broke off", slog.String("path", r.URL.Path), slog.Any("error", err))
	}
	panic(http.ErrAbortHandler)
}

// accepts says whether the client asks for a media type by name.
func (r *request) accepts(kind string) bool {
	for _, line := range r.Header.Values("Accept") {
		for one := range strings.SplitSeq(line, ",") {
			if got, _, err := mime.ParseMediaType(one); err == nil && got == kind {
				return true
			}
		}
	}
	return false
}
