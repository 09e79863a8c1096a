// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/engine/lifecycle"
)

// names records the names of added and deleted objects.
type names struct {
	mu    sync.Mutex
	lines []string
}

func (n *names) note(what string, obj any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, what+" "+obj.(client.Object).GetName())
}

func (n *names) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	lines := n.lines
	n.lines = nil
	return slices.Sorted(slices.Values(lines))
}

func (n *names) listen(t *testing.T, informer Informer) {
	t.Helper()
	events, err := informer.GetInformer(t.Context(), &corev1.ConfigMap{})
	must(t, err)
	_, err = events.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { n.note("add", obj) }, DeleteFunc: func(obj any) { n.note("delete", obj) },
	})
	must(t, err)
}

func (a *tinyAPI) watchCount() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.watches)
}

// An informer that is started and removed many times delivers, each time, what exists then, with its indexes.
func TestWhileServed(t *testing.T) {
	all := func(client.Object) bool { return true }
	for name, tc := range map[string]struct {
		wrap      func(informer Informer) Informer
		readFirst bool
	}{
		"a store":              {wrap: func(informer Informer) Informer { return informer }},
		"a shard":              {wrap: func(informer Informer) Informer { return sharded(informer, all) }},
		"a store, read before": {wrap: func(informer Informer) Informer { return informer }, readFirst: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				api := newTinyAPI()
				api.put("a", "1")
				informer := WhileServed(tc.wrap(newTestInformer(t, api, NewMemoryStore())))
				if again := WhileServed(informer); again != informer {
					t.Error("the informer was wrapped twice")
				}
				byName := func(obj client.Object) []string { return []string{obj.GetName()} }
				must(t, informer.IndexField(t.Context(), &corev1.ConfigMap{}, "name", byName))
				if err := informer.IndexField(t.Context(), &corev1.ConfigMap{}, "name", byName); err == nil {
					t.Error("a second index with the same name: no error")
				}
				stop := launch(t, informer)
				if !informer.WaitForCacheSync(t.Context()) || lifecycle.CheckSynced(t.Context(), informer) != nil {
					t.Error("something waits for the informer")
				}
				synctest.Wait()
				if api.watchCount() > 0 {
					t.Error("the informer watches objects before it is asked for events")
				}

				heard := &names{}
				for round, last := range []string{"b", "c", "d"} {
					if tc.readFirst {
						listed(t, informer)
					}
					api.put(last, "1")
					heard.listen(t, informer)
					synctest.Wait()
					want := []string{}
					for _, name := range slices.Sorted(maps.Keys(api.state())) {
						want = append(want, "add "+name)
					}
					if diff := cmp.Diff(want, heard.take()); diff != "" {
						t.Errorf("round %d: events (-want +got):\n%s", round, diff)
					}
					found := listed(t, informer, client.MatchingFields{"name": last})
					if diff := cmp.Diff([]string{last}, slices.Collect(maps.Keys(found))); diff != "" {
						t.Errorf("round %d: objects with the name (-want +got):\n%s", round, diff)
					}
					api.put("goes", "1")
					api.remove("goes")
					synctest.Wait()
					if diff := cmp.Diff([]string{"add goes", "delete goes"}, heard.take()); diff != "" {
						t.Errorf("round %d: later events (-want +got):\n%s", round, diff)
					}
					must(t, informer.RemoveInformer(t.Context(), &corev1.ConfigMap{}))
					must(t, informer.RemoveInformer(t.Context(), &corev1.ConfigMap{}))
					api.put("missed", "1")
					api.remove("missed")
					synctest.Wait()
					if n := api.watchCount(); n > 0 {
						t.Errorf("round %d: %d watches of an informer that was removed", round, n)
					}
					if got := heard.take(); len(got) > 0 {
						t.Errorf("round %d: events of an informer that was removed: %q", round, got)
					}
				}
				stop()
				if _, err := informer.GetInformer(context.Background(), &corev1.ConfigMap{}); err == nil {
					t.Error("an informer that has stopped: no error")
				}
			})
		})
	}
}

// The informer of a view is nil, with and without WhileServed.
func TestWhileServed_Nil(t *testing.T) {
	for name, informer := range map[string]Informer{
		"nil": nil, "typed nil": (*CustomCache)(nil), "nil cache": New(nil, &corev1.ConfigMap{}),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := View(nil, "it", WhileServed(informer))
			if err == nil || !strings.Contains(err.Error(), "must not be nil") {
				t.Errorf("got error %v", err)
			}
		})
	}
}
