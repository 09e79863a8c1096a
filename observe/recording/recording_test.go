// SPDX-License-Identifier: Apache-2.0

package recording_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/observe/recording"
)

// sample returns a recording with all fields.
func sample() recording.Recording {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	database := recording.Ref{Group: "example.com", Version: "v1", Kind: "Database", Namespace: "shop", Name: "orders"}
	config := recording.Ref{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "orders"}
	object := recording.Object{Ref: config, ResourceVersion: "7", Content: json.RawMessage(`{"kind":"ConfigMap"}`)}
	return recording.Recording{
		Version: recording.Version, Recorded: at, Controller: "database", Object: database, Omitted: 2,
		Before: []recording.Object{object},
		Runs: []recording.Run{{
			ID: "1", Started: at, Duration: time.Second, Outcome: "Failed", Error: "conflict", Omitted: 1, Loop: true,
			NoOpsBefore: 3,
			Causes: []recording.Cause{{
				Type: "Object", At: at, Object: database, Verb: "Updated", Version: "6", Count: 1, After: time.Second,
				Attempt: 1, Error: "before",
			}},
			Objects: []recording.Object{object},
			Calls: []recording.Call{{
				At: at, Duration: time.Second, Verb: "update", Apply: true, DryRun: true, Object: config, GenerateName: "a-",
				Subresource: "status", Cached: true, Before: "6", After: "7", NoOp: true, Items: 1,
				Error:   &recording.Error{Text: "conflict", Code: 409, Reason: "Conflict"},
				Objects: []recording.Object{object},
				Stale:   []recording.Stale{{Ref: config, Has: "6", Known: "7"}},
			}},
		}},
	}
}

func TestWrite_isWhatReadReads(t *testing.T) {
	want := sample()
	var b bytes.Buffer
	if err := recording.Write(&b, want); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "recording.json")
	if err := os.WriteFile(file, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := recording.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	compact := cmp.Transformer("compact", func(raw json.RawMessage) string {
		var b bytes.Buffer
		_ = json.Compact(&b, raw)
		return b.String()
	})
	if diff := cmp.Diff(want, got, compact); diff != "" {
		t.Errorf("recording (-want +got):\n%s", diff)
	}
}

// TestRead_whatIsWrong tests the errors for files that are not recordings.
func TestRead_whatIsWrong(t *testing.T) {
	for _, tc := range []struct {
		name, content string
		want          []string
	}{
		{"an empty file", ``, []string{"not JSON of a recording"}},
		{"a page of the console", `<!doctype html>`, []string{"not JSON of a recording"}},
		{"other JSON", `{"error":"not found"}`, []string{"version is required"}},
		{"another version", `{"version":2}`, []string{"version must be 1, got 2"}},
		{"a wrong type", `{"version":1,"runs":{}}`, []string{"runs"}},
		{"no object", `{"version":1}`, []string{"object.kind is required", "object.name is required"}},
		{
			"wrong runs", `{"version":1,"object":{"kind":"A","name":"a"},"runs":[{"outcome":"Bad","calls":[{"verb":"eat",
			"objects":[{"content":"x"}]}]}]}`,
			[]string{
				`runs[0].outcome: must be Changed, NoOp, Failed or Panicked, got "Bad"`,
				`runs[0].calls[0].verb: unknown verb "eat"`, "runs[0].calls[0].object.kind is required",
				"runs[0].calls[0].objects[0].kind is required", "runs[0].calls[0].objects[0].content: must be an object",
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := recording.Read(strings.NewReader(tc.content))
			for _, want := range tc.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
			}
		})
	}
	missing := filepath.Join(t.TempDir(), "missing.json")
	if _, err := recording.ReadFile(missing); err == nil || !strings.Contains(err.Error(), missing) {
		t.Errorf("error %v, want the name of the file", err)
	}
}

func ExampleRead() {
	file := strings.NewReader(`{"version": 1, "object": {"kind": "Database", "namespace": "shop", "name": "orders"}}`)
	r, err := recording.Read(file)
	fmt.Println(r.Object, len(r.Runs), err)

	_, err = recording.Read(strings.NewReader(`{"version": 7}`))
	fmt.Println(err)
	// Output:
	// Database shop/orders 0 <nil>
	// read recording: version must be 1, got 7
}

func ExampleWrite() {
	_ = recording.Write(os.Stdout, recording.Recording{
		Version: recording.Version, Controller: "database", Object: recording.Ref{Kind: "Database", Name: "orders"},
		Runs: []recording.Run{},
	})
	// Output:
	// {
	//   "version": 1,
	//   "recorded": "0001-01-01T00:00:00Z",
	//   "controller": "database",
	//   "object": {
	//     "kind": "Database",
	//     "name": "orders"
	//   },
	//   "runs": []
	// }
}
