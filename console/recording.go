// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"mime"
	"net/http"
	"strings"

	"trueup.dev/observe/recorder"
	"trueup.dev/observe/recording"
)

// RecordingPath returns the path of the recording of an object, relative to the root of the console. It is a file in
// the format of package [trueup.dev/observe/recording].
func RecordingPath(o recorder.Object) string { return ObjectPath(o) + "/recording" }

// noObjects is the answer of a console whose recorder keeps no objects.
const noObjects = "the recorder of this controller keeps no objects, so there are no recordings: set Objects in the " +
	"options of its recorder"

// recording serves the recording of an object as a file.
func (h *handler) recording(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Type", formatJSON)
	found, ok := h.recorder.Recording(r.PathValue("controller"), nameOf(r))
	if !ok {
		reason := "there is no recording of this object"
		if !h.recorder.KeepsObjects() {
			reason = noObjects
		}
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": reason}) // the client may have gone away
		return
	}
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{
		"filename": FileName(found),
	}))
	_ = recording.Write(w, found) // the client may have gone away
}

// FileName returns a name for the file of a recording, for example "database-shop-orders.json".
func FileName(r recording.Recording) string {
	parts := []string{strings.ToLower(r.Object.Kind), r.Object.Namespace, r.Object.Name}
	name := strings.Join(parts, "-")
	if r.Object.Namespace == "" {
		name = parts[0] + "-" + parts[2]
	}
	return strings.NewReplacer("/", "-", "\\", "-", ":", "-").Replace(name) + ".json"
}
