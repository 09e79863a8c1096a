// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"trueup.dev/converge/internal/world"
	"trueup.dev/internal/memapi"
)

// changes returns changes of fields: each is written "writer object.path=value".
func changes(texts ...string) []Revision {
	var revisions []Revision
	for _, text := range texts {
		by, rest, _ := strings.Cut(text, " ")
		at, value, _ := strings.Cut(rest, "=")
		object, path, _ := strings.Cut(at, ".")
		revisions = append(revisions, Revision{
			event: memapi.Event{Type: watch.Modified}, writer: world.Writer{Client: by}, Object: object,
			fields: []fieldRevision{{path: path, to: value}},
		})
	}
	return revisions
}

// TestFightIn finds fields that two writers change in turn.
func TestFightIn(t *testing.T) {
	for name, c := range map[string]struct {
		revisions []Revision
		want      string
	}{
		"in turn": {
			changes("one web.size=1", "two web.size=2", "one web.size=1", "two web.size=2"),
			"one and two change size of web in turn: 1, 2, 1, 2, …",
		},
		"not often enough": {changes("one web.size=1", "two web.size=2", "one web.size=1"), ""},
		"one changes it twice, and the turns begin again": {
			changes("one web.size=1", "two web.size=2", "two web.size=3", "one web.size=1", "two web.size=2"), "",
		},
		"long enough after that": {
			changes("two web.size=2", "two web.size=3", "one web.size=1", "two web.size=2", "one web.size=1"),
			"two and one change size of web in turn: 3, 1, 2, 1, …",
		},
		"different fields":  {changes("one web.size=1", "two web.color=2", "one web.size=1", "two web.color=2"), ""},
		"different objects": {changes("one web.size=1", "two db.size=2", "one web.size=1", "two db.size=2"), ""},
		"a third writer": {
			changes("one web.size=1", "two web.size=2", "three web.size=3", "one web.size=1", "two web.size=2"), "",
		},
	} {
		got := ""
		if f, ok := FightIn(c.revisions, LeastTurns); ok {
			got = f.message()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// TestCycleIn finds changes of several writers that are repeated. Values may differ each time.
func TestCycleIn(t *testing.T) {
	var repeated []string
	for n := range leastRounds {
		repeated = append(repeated, fmt.Sprint("one web.size=", n), fmt.Sprint("two db.count=", n), "two web.note=old")
	}
	h := History{IsProgram: func(string) bool { return false }} // actors act only on changes
	want := "the same steps again and again: one has modified web; two has modified db; two has modified web"
	if c := h.CycleIn(changes(repeated...)); c == nil || c.Message() != want {
		t.Errorf("got %v, want %s", c, want)
	}
	for name, revisions := range map[string][]Revision{
		"not often enough": changes(repeated[3:]...),
		"another field":    changes(append(repeated[:8:8], "two web.other=x")...),
		"one writer": changes(
			"one web.size=1", "one db.count=1", "one web.size=2", "one db.count=2", "one web.size=3", "one db.count=3",
		),
	} {
		if c := h.CycleIn(revisions); c != nil {
			t.Errorf("%s: got %s", name, c.Message())
		}
	}
	programs := History{IsProgram: func(string) bool { return true }}
	if c := programs.CycleIn(changes(repeated...)); c != nil {
		t.Errorf("programs that no change of another one has led to: got %s", c.Message())
	}
}

// TestDeadlock finds objects that wait for each other, by what the reconciles of those who hold them have found.
func TestDeadlock(t *testing.T) {
	stuckObject := func(name, by string) *Stuck {
		obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		kind := schema.GroupVersionKind{Kind: "ConfigMap"}
		key := types.NamespacedName{Name: name}
		s := &Stuck{ObjectOf: world.ObjectOf{Kind: kind, Key: key}, Name: name, Obj: obj}
		s.holders = []holder{{finalizer: "example.com/" + by, writer: world.Writer{Client: by, Key: key}}}
		return s
	}
	a, b, c := stuckObject("a", "one"), stuckObject("b", "two"), stuckObject("c", "three")
	all := []*Stuck{a, b, c}
	FindDependencies(all, world.Found{
		a.holders[0].writer: {b.ObjectOf}, b.holders[0].writer: {a.ObjectOf}, c.holders[0].writer: {a.ObjectOf},
	})
	var names []string
	for _, s := range Deadlock(all) {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" {
		t.Errorf("deadlock (-want +got):\n%s", diff)
	}
	v := Deadlocked(Deadlock(all))
	if want := "a and b wait for each other to be deleted"; v.Message != want {
		t.Errorf("got %q, want %q", v.Message, want)
	}
	if want := "a is held by the finalizer example.com/one of one, waits for b"; len(v.Details) != 2 ||
		v.Details[0] != want {
		t.Errorf("got %q, want %q first", v.Details, want)
	}
	b.waitsFor = nil
	if found := Deadlock(all); found != nil {
		t.Errorf("got %v, want none without a cycle", found)
	}
}
