// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"trueup.dev/observe"
)

// everything is a plan with all that a plan can have.
func everything() *Plan {
	many := []observe.Change{}
	for i := range 25 {
		many = append(many, observe.Change{Path: fmt.Sprintf("data[%02d]", i), Before: "1", After: "2"})
	}
	return &Plan{
		Requests: []Request{{Controller: "web", Namespace: "default", Name: "main"}},
		Changes: []Change{
			{
				Action: Create, Kind: "Job", Namespace: "default", GenerateName: "once-",
				Fields: []observe.Change{{Path: "spec.suspend", After: "true"}},
			},
			{Action: Update, Kind: "Deployment", Namespace: "default", Name: "main", Fields: []observe.Change{
				{Path: "spec.replicas", Before: "1", After: "3"},
				{Path: "spec.paused", Before: "true"},
				{Path: "metadata.labels[a]", After: `"b"`},
				{Path: "status.conditions[Ready]: status True"},
				{Path: "status.conditions[A]: added, status True", After: `"new"`},
				{Path: "status.conditions[C]: message", Before: `"old"`, After: `"new"`},
				{Path: "status.conditions[D]: status True, message", Before: `"old"`, After: `"new"`},
				{Path: "status.conditions[B]: status True", Before: `"old"`, After: `"new"`},
			}},
			{Action: Update, Kind: "ConfigMap", Namespace: "default", Name: "many", Fields: many},
			{Action: Replace, Kind: "Service", Namespace: "default", Name: "main"},
			{Action: Delete, Kind: "Namespace", Name: "old", Finalizers: []string{"example.com/a", "example.com/b"}},
			{Action: Delete, Kind: "Pod", Namespace: "default", Name: "old", Collected: true},
		},
		External: []string{"delete bucket main"},
		Events: []Event{{
			Kind: "Web", Namespace: "default", Name: "main", Type: "Normal", Reason: "Created", Message: "Created it",
		}},
		Errors:       []Failure{{Request: Request{Controller: "web", Name: "cluster"}, Error: "it failed"}},
		Unknown:      []string{"the weather"},
		Reconciles:   3,
		RequeueAfter: time.Minute,
	}
}

func TestPlanText(t *testing.T) {
	fields := ""
	for i := range maxLines {
		fields += fmt.Sprintf("    data[%02d]: 1 → 2\n", i)
	}
	want := `+ Job default/once-<generated>
    spec.suspend = true
~ Deployment default/main
    spec.replicas: 1 → 3
    spec.paused removed, was true
    metadata.labels[a] = "b"
    status.conditions[Ready]: status True
    status.conditions[A]: added, status True, message "new"
    status.conditions[C]: message "old" → "new"
    status.conditions[D]: status True, message "old" → "new"
    status.conditions[B]: status True, message "old" → "new"
~ ConfigMap default/many
` + fields + `    … 5 more fields
± Service default/main
- Namespace old (waits for finalizers: example.com/a, example.com/b)
- Pod default/old (by the garbage collector)
* outside of Kubernetes: delete bucket main
event of Web default/main: Normal Created: Created it
! error of web cluster: it failed
? unknown: the weather
Plan: 1 to create, 2 to update, 1 to replace, 2 to delete, 1 outside of Kubernetes. ` +
		"The next reconcile is due after 1m0s.\n"
	if diff := cmp.Diff(want, everything().Text()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("No changes.\n", (&Plan{}).Text()); diff != "" {
		t.Errorf("empty plan (-want +got):\n%s", diff)
	}
}

func TestPlanJSON(t *testing.T) {
	p := everything()
	p.Changes = p.Changes[:1]
	want := `{"requests":[{"controller":"web","namespace":"default","name":"main"}],` +
		`"changes":[{"action":"create","apiVersion":"","kind":"Job","namespace":"default","generateName":"once-",` +
		`"fields":[{"path":"spec.suspend","after":"true"}]}],` +
		`"events":[{"kind":"Web","namespace":"default","name":"main","type":"Normal","reason":"Created","message":"Created it"}],` +
		`"external":["delete bucket main"],"errors":[{"request":{"controller":"web","name":"cluster"},` +
		`"error":"it failed"}],"unknown":["the weather"],"reconciles":3,"requeueAfter":"1m0s"}`
	got, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSummary(t *testing.T) {
	s := &Summary{}
	for i := range 312 {
		s.Add(&Plan{Changes: []Change{{
			Action: Update, Kind: "Deployment", Namespace: "default", Name: fmt.Sprintf("web-%d", i),
			Fields: []observe.Change{
				{Path: "spec.template.spec.containers[web].env[X]", After: `{"name":"X","value":"1"}`},
				{Path: "metadata.annotations[hash]", Before: fmt.Sprint(i), After: fmt.Sprint(i + 1)},
			},
		}}})
	}
	s.Add(&Plan{})
	s.Add(&Plan{Errors: []Failure{{Error: "it failed"}}, Unknown: []string{"the weather"}})
	s.Add(&Plan{Errors: []Failure{{Error: "it failed"}}, Unknown: []string{"the weather"}})
	want := `~ 312 × Deployment spec.template.spec.containers[web].env[X] = {"name":"X","value":"1"}, for example default/web-0
~ 312 × Deployment metadata.annotations[hash], for example default/web-0
! error: it failed
? unknown: the weather
Planned requests: 315, with changes: 312, with errors: 2. Nothing is deleted.
`
	if diff := cmp.Diff(want, s.Text()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s.Add(everything())
	if got := s.Deleted; got != 3 {
		t.Errorf("%d objects are deleted or replaced, want 3", got)
	}
}

func TestSummary_Limits(t *testing.T) {
	s := &Summary{}
	for i := range 2 * maxGroups {
		s.Add(&Plan{
			Changes: []Change{{Action: Update, Kind: "ConfigMap", Fields: []observe.Change{{Path: fmt.Sprintf("data[%d]", i)}}}},
			Unknown: []string{fmt.Sprint(i)},
		})
	}
	if len(s.Groups) != maxGroups || s.Others != maxGroups || len(s.Unknown) != maxTexts {
		t.Errorf("%d groups, %d others, %d texts", len(s.Groups), s.Others, len(s.Unknown))
	}
}

// Are the paths of a summary in JSON the paths of fields? What changed of a condition is a value of its own, and the
// text has both.
func TestPathsOfGroupsInJSONAreOfFields(t *testing.T) {
	var sum Summary
	sum.Add(&Plan{Changes: []Change{{
		Action: Update, Kind: "Deployment", Name: "main", Fields: []observe.Change{
			{Path: "status.conditions[Ready]: added, status True", After: `"new"`},
			{Path: "data[a: b]", Before: "1", After: "2"},
		},
	}}})
	got, err := json.Marshal(sum.Groups)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"action":"update","kind":"Deployment","path":"status.conditions[Ready]","condition":"added, status True",` +
		`"after":"\"new\"","objects":1,"example":"main"},` +
		`{"action":"update","kind":"Deployment","path":"data[a: b]","before":"1","after":"2","objects":1,"example":"main"}]`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
	text := "~ 1 × Deployment status.conditions[Ready]: added, status True, message \"new\", for example main\n" +
		"~ 1 × Deployment data[a: b]: 1 → 2, for example main\n" +
		"Planned requests: 1, with changes: 1, with errors: 0. Nothing is deleted.\n"
	if diff := cmp.Diff(text, sum.Text()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}
