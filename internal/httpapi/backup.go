package httpapi

import (
	"fmt"
	"net/http"
)

// backupType is the media type of a backup.
const backupType = "application/octet-stream"

// backup writes a copy of the store, which its reader can tell from one that
// broke off. A page of another origin could not read it, and may not have it
// made either.
func (h *Handler) backup(w http.ResponseWriter, r *request) error {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return fmt.Errorf("%w: a page of another origin may not make a backup", errCrossOrigin)
	}
	w.Header().Set("Content-Disposition", `attachment; filename="duemq.backup"`)
	out := h.stream(w, backupType)
	if r.Method == http.MethodHead {
		return nil
	}
	if _, err := h.b.Backup(r.Context(), out, nil); err != nil {
		return out.broken(r, err)
	}
	return nil
}
