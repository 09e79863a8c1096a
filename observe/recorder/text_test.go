// SPDX-License-Identifier: Apache-2.0

package recorder_test

import (
	"fmt"
	"testing"
	"time"

	"trueup.dev/observe"
	"trueup.dev/observe/recorder"
)

func TestCausesAndCallsInWords(t *testing.T) {
	object := recorder.Ref{Version: "v1", Kind: "ConfigMap", Namespace: "default", Name: "a"}
	configMaps := recorder.Ref{Kind: "ConfigMap", Namespace: "default"}
	owned := recorder.Cause{Type: observe.CauseOwned, Verb: observe.Updated, Object: object}
	retry := recorder.Cause{Type: observe.CauseRetry, Attempt: 3, After: 2 * time.Second}
	status := recorder.Call{Verb: "patch", Apply: true, Subresource: "status", Object: object}
	for want, value := range map[string]fmt.Stringer{
		"the object was created":                  recorder.Cause{Type: observe.CauseObject, Verb: observe.Created},
		"ConfigMap default/a was updated (owned)": owned,
		"the controller started":                  recorder.Cause{Type: observe.CauseStartUp, Count: 1},
		"periodic resync, 2 times":                recorder.Cause{Type: observe.CauseResync, Count: 2},
		"requested requeue (1m0s)":                recorder.Cause{Type: observe.CauseRequeue, After: time.Minute},
		"retry 3 (2s) after an error":             retry,
		"waited for the caches (20ms)":            recorder.Cause{Type: observe.CauseStaleRead, After: 20 * time.Millisecond},
		"delayed because of a loop":               recorder.Cause{Type: observe.CauseLoopDelay},
		"event of a source":                       recorder.Cause{Type: observe.CauseSource},
		"unknown cause":                           recorder.Cause{Type: observe.CauseUnknown},
		"create ConfigMap default/a":              recorder.Call{Verb: "create", Object: object},
		"apply status of ConfigMap default/a":     status,
		"list ConfigMap in default":               recorder.Call{Verb: "list", Object: configMaps},
		"list Node":                               recorder.Call{Verb: "list", Object: recorder.Ref{Kind: "Node"}},
	} {
		if got := value.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	notes := recorder.Call{Verb: "list", Cached: true, Items: 3}.Notes()
	if got := fmt.Sprint(notes); got != "[from the cache 3 items]" {
		t.Errorf("notes: %s", got)
	}
}
