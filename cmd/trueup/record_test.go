// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"trueup.dev/console"
	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
	"trueup.dev/observe/recording"
)

// TestRecord writes the recording of an object of a running console to a file and to the standard output.
func TestRecord(t *testing.T) {
	r := recorder.New(recorder.Options{Objects: true})
	reconcile := &observe.Run{
		ID: "1", Controller: "database", Kind: schema.GroupVersionKind{Version: "v1", Kind: "Database"}, Started: time.Now(),
		Object: types.NamespacedName{Namespace: "shop", Name: "orders"},
		Causes: []observe.Cause{{Type: observe.CauseStartUp, Count: 1}},
	}
	for _, e := range []observe.Event{
		&observe.ReconcileStarted{Run: reconcile},
		&observe.Call{Run: reconcile, Verb: observe.VerbCreate, Kind: reconcile.Kind, Object: reconcile.Object},
		&observe.ReconcileFinished{Run: reconcile},
	} {
		r.Observe(nil, e) //nolint:staticcheck // the recorder ignores the context
	}
	server := httptest.NewServer(console.Handler(r))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "orders.json")
	var stdout, stderr bytes.Buffer
	record := func(output string) int {
		args := []string{"record", "database", "orders", "--url", server.URL, "--output", output}
		return run(t.Context(), args, &stdout, &stderr)
	}
	if code := record(file); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	if got := stdout.String(); !strings.HasPrefix(got, file+": 1 reconciles of Database shop/orders, ") {
		t.Errorf("output: %s", got)
	}
	found, err := recording.ReadFile(file)
	if err != nil || found.Object.Name != "orders" {
		t.Errorf("recording of %v, error %v", found.Object, err)
	}
	stdout.Reset()
	if code := record("-"); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	printed, err := recording.Read(&stdout)
	if err != nil {
		t.Fatal(err)
	}
	printed.Recorded = found.Recorded
	if diff := cmp.Diff(found, printed); diff != "" {
		t.Errorf("recordings (-file +standard output):\n%s", diff)
	}
	if code := record("/none/x"); code != 1 ||
		!strings.Contains(stderr.String(), "--output: ") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
}
