// SPDX-License-Identifier: Apache-2.0

package past

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"trueup.dev/converge/internal/inject"
	"trueup.dev/converge/internal/phrase"
	"trueup.dev/observe/recording"
)

var (
	theService = recording.Ref{Version: "v1", Kind: "Service", Namespace: "shop", Name: "web"}
	theSecret  = recording.Ref{Version: "v1", Kind: "Secret", Namespace: "shop", Name: "key"}
	lateSecret = recording.Ref{Version: "v1", Kind: "Secret", Namespace: "shop", Name: "late"}
	theConfig  = recording.Ref{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "web"}
)

const (
	ownedByService = `"ownerReferences":[{"kind":"Service","name":"web","controller":true}]`
	gone           = "NotFound"
)

// version returns an object with fields of its metadata and other fields.
func version(ref recording.Ref, number int, metadata, fields string) recording.Object {
	content := fmt.Sprintf(`{"metadata":{"name":%q%s}%s}`, ref.Name, comma(metadata), comma(fields))
	return recording.Object{Ref: ref, ResourceVersion: fmt.Sprint(number), Content: json.RawMessage(content)}
}

func comma(text string) string {
	if text == "" {
		return ""
	}
	return "," + text
}

func read(objects ...recording.Object) recording.Call {
	return recording.Call{Verb: "get", Cached: true, Object: objects[0].Ref, Objects: objects}
}

func wrote(verb string, obj recording.Object) recording.Call {
	return recording.Call{Verb: verb, Object: obj.Ref, After: obj.ResourceVersion, Objects: []recording.Object{obj}}
}

func failed(verb string, ref recording.Ref, code int, reason string) recording.Call {
	return recording.Call{
		Verb: verb, Object: ref, Cached: verb == "get", Error: &recording.Error{Text: reason, Code: code, Reason: reason},
	}
}

func oneRun(calls ...recording.Call) *recording.Recording {
	return &recording.Recording{Object: theService, Runs: []recording.Run{{Calls: calls}}}
}

// TestHistory_whatDidUsersDo tests which steps and given objects a recording has.
func TestHistory_whatDidUsersDo(t *testing.T) {
	first := version(theService, 1, "", `"spec":{"type":"ClusterIP"}`)
	child := version(theConfig, 2, ownedByService, "")
	for _, tc := range []struct {
		name   string
		calls  []recording.Call
		actors bool
		given  []string
		steps  []string
	}{
		{"they create it", []recording.Call{read(first)}, false, nil, []string{"apply Service shop/web"}},
		{
			"they change the spec, but the controller changes the status",
			[]recording.Call{
				read(first), wrote("update", version(theService, 2, "", `"spec":{"type":"ClusterIP"},"status":{"a":1}`)),
				read(version(theService, 3, "", `"spec":{"type":"NodePort"},"status":{"a":1}`)),
			},
			false, nil,
			[]string{"apply Service shop/web", "change Service shop/web"},
		},
		{
			"a change of metadata that is none of theirs",
			[]recording.Call{
				read(first, version(theService, 2, `"generation":2,"finalizers":["a"]`, `"spec":{"type":"ClusterIP"}`)),
			},
			false, nil,
			[]string{"apply Service shop/web"},
		},
		{
			"they delete it, and it has finalizers",
			[]recording.Call{
				read(first, version(theService, 2, `"deletionTimestamp":"2026-01-01T00:00:00Z"`, `"spec":{"type":"ClusterIP"}`)),
				failed("get", theService, 404, gone),
			},
			false, nil,
			[]string{"apply Service shop/web", "delete Service shop/web"},
		},
		{
			"they delete and create it",
			[]recording.Call{
				read(version(theService, 1, `"uid":"1"`, ""), version(theService, 5, `"uid":"2"`, "")),
			},
			false, nil,
			[]string{"apply Service shop/web", "delete Service shop/web", "apply Service shop/web"},
		},
		{
			"a secret that exists, and one that they create",
			[]recording.Call{
				read(first, version(theSecret, 2, "", "")), failed("get", lateSecret, 404, gone),
				read(version(lateSecret, 3, "", "")),
			},
			false,
			[]string{"Secret key"},
			[]string{"apply Service shop/web", "apply Secret shop/late"},
		},
		{
			"children of the controller, and a write whose answer was lost",
			[]recording.Call{
				read(first, version(theConfig, 2, ownedByService, `"data":{"a":"1"}`)), failed("update", theConfig, 0, ""),
				read(version(theConfig, 3, ownedByService, `"data":{"a":"2"}`)), failed("update", theService, 504, "Timeout"),
				read(version(theService, 4, "", `"spec":{"type":"NodePort"}`)),
			},
			false, nil,
			[]string{"apply Service shop/web"},
		},
		{
			"another client deletes a child, and its status is that of another controller",
			[]recording.Call{
				read(first, child, version(theConfig, 3, ownedByService, `"status":{"a":1}`)),
				failed("get", theConfig, 404, gone),
			},
			false, nil,
			[]string{"apply Service shop/web", "change status of ConfigMap shop/web", "delete ConfigMap shop/web"},
		},
		{
			"the same, with actors",
			[]recording.Call{
				read(first, child, version(theConfig, 3, ownedByService, `"status":{"a":1}`)),
				failed("get", theConfig, 404, gone),
			},
			true, nil,
			[]string{"apply Service shop/web"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := newHistory(oneRun(tc.calls...), clientgoscheme.Scheme, tc.actors)
			h.read()
			var given []string
			for _, obj := range h.Given {
				if kind := obj.GetObjectKind().GroupVersionKind().Kind; kind != "" { // not the namespace
					given = append(given, kind+" "+obj.GetName())
				}
			}
			if diff := cmp.Diff(tc.steps, namesOf(h.Changes)); diff != "" || len(h.problems) > 0 {
				t.Errorf("problems %v; steps (-want +got):\n%s", h.problems, diff)
			}
			if diff := cmp.Diff(tc.given, given); diff != "" {
				t.Errorf("given (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHistory_mergedEvents tests the causes of one request, whose events are merged.
func TestHistory_mergedEvents(t *testing.T) {
	deleting := version(theService, 4, `"uid":"1","deletionTimestamp":"2026-01-01T00:00:00Z"`, "")
	again := version(theService, 7, `"uid":"2"`, "")
	updated := recording.Cause{Type: "Object", Verb: "Updated", Object: theService, Version: "4"}
	deleted := recording.Cause{Type: "Object", Verb: "Deleted", Object: theService, Version: "4"}
	created := recording.Cause{Type: "Object", Verb: "Created", Object: theService, Version: "7"}
	for _, tc := range []struct {
		reason string
		second recording.Run
		want   []string
	}{
		{
			"it is being deleted, and then no longer exists",
			recording.Run{Causes: []recording.Cause{updated, deleted}, Objects: []recording.Object{deleting}},
			[]string{"apply Service shop/web", "delete Service shop/web"},
		},
		{
			"it no longer exists, and then exists again",
			recording.Run{Causes: []recording.Cause{deleted, created}, Objects: []recording.Object{again}},
			[]string{"apply Service shop/web", "delete Service shop/web", "apply Service shop/web"},
		},
		{
			"it no longer exists",
			recording.Run{Causes: []recording.Cause{deleted}},
			[]string{"apply Service shop/web", "delete Service shop/web"},
		},
	} {
		t.Run(tc.reason, func(t *testing.T) {
			h := newHistory(&recording.Recording{Object: theService, Runs: []recording.Run{
				{Calls: []recording.Call{read(version(theService, 3, `"uid":"1"`, ""))}}, tc.second,
			}}, clientgoscheme.Scheme, false)
			h.read()
			if diff := cmp.Diff(tc.want, namesOf(h.Changes)); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
		})
	}
}

// namesOf describes changes as steps do.
func namesOf(changes []Change) (names []string) {
	for _, change := range changes {
		switch {
		case change.Applied != nil:
			names = append(names, "apply "+phrase.Describe(change.Applied))
		case change.Deleted != nil:
			names = append(names, "delete "+phrase.Describe(change.Deleted))
		default:
			names = append(names, change.Name)
		}
	}
	return names
}

// TestHistory_whatMayBeMissing tests which objects that never existed may exist later.
func TestHistory_whatMayBeMissing(t *testing.T) {
	first, late := version(theService, 1, "", ""), failed("get", lateSecret, 404, gone)
	for _, tc := range []struct {
		reason string
		calls  []recording.Call
		want   bool
	}{
		{"nothing is missing", []recording.Call{read(first)}, false},
		{"users may create it later", []recording.Call{read(first), late}, true},
		{"users have created it", []recording.Call{read(first), late, read(version(lateSecret, 3, "", ""))}, false},
		{
			"the controller creates it",
			[]recording.Call{read(first), late, wrote("create", version(lateSecret, 3, "", ""))},
			false,
		},
		{
			"the controller may not create it",
			[]recording.Call{read(first), late, failed("create", lateSecret, 403, "Forbidden")},
			false,
		},
		{"users have deleted it", []recording.Call{read(first), read(version(lateSecret, 3, "", "")), late}, false},
		{"the object itself", []recording.Call{read(first), failed("get", theService, 404, gone)}, false},
	} {
		h := newHistory(oneRun(tc.calls...), clientgoscheme.Scheme, false)
		h.read()
		if got := h.awaits(); got != tc.want {
			t.Errorf("%s: got %t, want %t", tc.reason, got, tc.want)
		}
	}
}

// TestHistory_whatOthersAdd tests which labels and annotations may be lost when the controller makes an object again.
func TestHistory_whatOthersAdd(t *testing.T) {
	ours := ownedByService + `,"annotations":{"ours":"1"}`
	h := newHistory(oneRun(
		read(version(theService, 1, "", "")), read(version(theService, 2, `"annotations":{"user":"1"}`, "")),
		wrote("create", version(theConfig, 3, ours, "")),
		read(version(theConfig, 4, ownedByService+`,"annotations":{"ours":"2","theirs":"1"},"labels":{"a":"b"}`, "")),
		wrote("update", version(theConfig, 5, ours, "")),
		read(version(theConfig, 6, ownedByService+`,"annotations":{"ours":"1","theirs":"2"}`, "")),
	), clientgoscheme.Scheme, false)
	h.read()
	got := []string{}
	for _, m := range h.Masks {
		got = append(got, m.Object.GetObjectKind().GroupVersionKind().Kind+" "+m.Field)
	}
	want := []string{"ConfigMap metadata.labels[a]", "ConfigMap metadata.annotations[theirs]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("masks (-want +got):\n%s", diff)
	}
}

// TestHistory_appliesNoStatus tests that the object starts as users write it.
func TestHistory_appliesNoStatus(t *testing.T) {
	metadata := `"uid":"1","finalizers":["a"],"labels":{"a":"b"},"resourceVersion":"7"`
	h := newHistory(
		oneRun(read(version(theService, 7, metadata, `"status":{"loadBalancer":{}}`))), clientgoscheme.Scheme, false,
	)
	h.read()
	obj := h.Changes[0].Applied
	if obj.GetUID() != "" || obj.GetResourceVersion() != "" || len(obj.GetFinalizers()) > 0 ||
		obj.GetLabels()["a"] != "b" {
		t.Errorf("got %+v", obj)
	}
}

// TestFaultsOfRecording_whatFailed tests the faults for answers.
func TestFaultsOfRecording_whatFailed(t *testing.T) {
	created := failed("create", theConfig, 504, "Timeout")
	live := failed("get", theService, 500, "InternalError")
	live.Cached = false
	status := failed("update", theService, 429, "TooManyRequests")
	status.Subresource = "status"
	quota := failed("create", theConfig, 403, "Forbidden")
	quota.Error.Text = "exceeded quota: a"
	pod := recording.Ref{Version: "v1", Kind: "Pod", Namespace: "shop", Name: "web-abcde"}
	generated := failed("create", recording.Ref{Version: "v1", Kind: "Pod", Namespace: "shop"}, 0, "")
	generated.GenerateName = "web-"
	stale := read(version(theService, 1, "", ""))
	stale.Objects, stale.Stale = nil, []recording.Stale{{Ref: theService, Has: "1", Known: "3"}}
	lacks := failed("get", theConfig, 404, gone)
	lacks.Stale = []recording.Stale{{Ref: theConfig, Known: "4"}}
	deleted := read(version(theConfig, 1, "", ""))
	deleted.Stale = []recording.Stale{{Ref: theConfig, Has: "1"}}
	for _, tc := range []struct {
		name  string
		calls []recording.Call
		want  []string
	}{
		{"conflict, the second time", []recording.Call{
			wrote("update", version(theConfig, 2, "", "")), failed("update", theConfig, 409, "Conflict"),
		}, []string{"conflict at update ConfigMap shop/web #2"}},
		{"no answer, without an effect", []recording.Call{created}, []string{
			"timeout-lost at create ConfigMap shop/web",
		}},
		{"no answer, with an effect that is read", []recording.Call{
			created, read(version(theConfig, 2, "", "")),
		}, []string{"timeout-applied at create ConfigMap shop/web"}},
		{"no answer, with an effect that the next attempt meets", []recording.Call{
			created, failed("create", theConfig, 409, "AlreadyExists"),
		}, []string{"timeout-applied at create ConfigMap shop/web", "exists at create ConfigMap shop/web #2"}},
		{"no answer, and the next attempt succeeds", []recording.Call{
			created, wrote("create", version(theConfig, 2, "", "")),
		}, []string{"timeout-lost at create ConfigMap shop/web"}},
		{"no answer for a generated name", []recording.Call{
			generated, read(version(pod, 2, "", "")),
		}, []string{"timeout-applied at create Pod shop/web-"}},
		{"errors of the server", []recording.Call{live, status}, []string{
			"server-error at live get Service shop/web", "too-many-requests at update Service/status shop/web",
		}},
		{"refused", []recording.Call{quota, failed("delete", theConfig, 403, "Forbidden")}, []string{
			"quota at create ConfigMap shop/web", "forbidden at delete ConfigMap shop/web",
		}},
		{"an answer that is wrong in itself", []recording.Call{failed("create", theConfig, 422, "Invalid")}, nil},
		{"an old answer", []recording.Call{
			read(version(theService, 1, "", "")), wrote("update", version(theService, 3, "", "")), stale,
		}, []string{"lag-reconcile at event modified Service shop/web"}},
		{"an answer without the created object", []recording.Call{
			wrote("create", version(theConfig, 4, "", "")), lacks,
		}, []string{"lag-reconcile at event added ConfigMap shop/web"}},
		{"an answer with the deleted object", []recording.Call{deleted}, []string{
			"lag-reconcile at event deleted ConfigMap shop/web",
		}},
		{"old answers for long", []recording.Call{lacks, lacks}, []string{"lag-long at event added ConfigMap shop/web"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			found := inject.OfRecording(oneRun(tc.calls...))
			var got []string
			for _, d := range found.Schedule {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			for _, d := range found.Schedule {
				if d.Fault.Row().Disabled != found.With[d.Fault] {
					t.Errorf("%s is not enabled", d.Fault)
				}
			}
		})
	}
}

// TestSimilar_mostSimilarFirst tests the schedules that are tried after the schedule of a recording.
func TestSimilar_mostSimilarFirst(t *testing.T) {
	found := inject.OfRecording(oneRun(
		failed("update", theConfig, 409, "Conflict"), failed("update", theService, 409, "Conflict"),
	))
	similar := found.Similar(nil)
	if len(similar) < 10 || len(similar) > inject.MaxSimilar {
		t.Fatalf("got %d schedules", len(similar))
	}
	seen := map[string]bool{}
	for _, s := range similar {
		if key := s.Encode(0); seen[key] || key == found.Schedule.Encode(0) {
			t.Errorf("%s is tried twice", key)
		} else {
			seen[key] = true
		}
	}
	if got := fmt.Sprint(similar[0], similar[1]); got != fmt.Sprint(found.Schedule[:1], found.Schedule[1:]) {
		t.Errorf("first: %s", got)
	}
}
