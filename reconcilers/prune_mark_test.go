// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// wroteLabel and wroteMark are the managed fields of the inventory that a client has set.
func wroteLabel(manager string) func(*corev1.ConfigMap) { return wrote(manager, "labels") }
func wroteMark(manager string) func(*corev1.ConfigMap)  { return wrote(manager, "annotations") }

func wrote(manager, where string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) {
		cm.ManagedFields = append(cm.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:` + where + `":{"f:` + inventoryKey + `":{}}}}`),
		})
	}
}

func elsewhere(cm *corev1.ConfigMap) { cm.Namespace = "other" }

// Only objects that this controller has made for the resource are pruned: no copies of them.
func TestPrune_Copies(t *testing.T) {
	const (
		deleted   = "deleted"
		kept      = "kept with a warning"
		untouched = "kept"
		ours      = "trueup/resource.fixture.trueup.dev@ed3488e6"
	)
	for name, tc := range map[string]struct {
		object []func(*corev1.ConfigMap)
		// record is the record of the resource if it is not only of ConfigMaps.
		record string
		config func(reconcilers.Config) reconcilers.Config
		// cached are the changes of the object in the cache, which may have no managed fields.
		cached []func(*corev1.ConfigMap)
		want   string
	}{
		"the mark names it":             {want: deleted},
		"the mark names another kind":   {object: edits(marked("Service/default/former/parent")), want: kept},
		"the mark names another group":  {object: edits(marked("ConfigMap.apps/default/former/parent")), want: kept},
		"the mark names another object": {object: edits(marked("ConfigMap/default/child/parent/owned")), want: kept},
		"the mark names another namespace": {
			object: edits(marked("ConfigMap/other/former/parent")), want: kept,
		},
		"the mark names another resource": {object: edits(marked("ConfigMap/default/former/other")), want: kept},
		"the mark names nothing":          {object: edits(marked("former")), want: kept},
		"the mark is empty":               {object: edits(marked("")), want: kept},
		"a copy that another owner has":   {object: edits(marked("former"), controlledBy("another")), want: untouched},
		"a copy that is being deleted":    {object: edits(marked("former"), deleting), want: untouched},

		"in a namespace that is not recorded": {
			object: edits(elsewhere, orphan, marked("ConfigMap/other/former/parent")), want: untouched,
		},
		"in a namespace that is recorded": {
			object: edits(elsewhere, orphan, marked("ConfigMap/other/former/parent")), want: deleted,
			record: `{"kinds":["ConfigMap"],"namespaces":["other"]}`,
		},
		"in all namespaces": {
			object: edits(elsewhere, orphan, marked("ConfigMap/other/former/parent")), want: deleted,
			record: `{"kinds":["ConfigMap"],"namespaces":["*"]}`,
		},
		"a copy in a namespace that is recorded": {
			object: edits(elsewhere, orphan), want: kept,
			record: `{"kinds":["ConfigMap"],"namespaces":["other"]}`,
		},

		// A version without marks has written the object.
		"no mark, controlled":               {object: edits(unmarked), want: deleted},
		"no mark, controlled, fields":       {object: edits(unmarked, wroteLabel("kubectl")), want: deleted},
		"no mark, not controlled":           {object: edits(unmarked, orphan), want: deleted},
		"no mark, the label is ours":        {object: edits(unmarked, orphan, wroteLabel(ours)), want: deleted},
		"no mark, the label is of a copier": {object: edits(unmarked, orphan, wroteLabel("copier")), want: kept},
		"no mark, we wrote something else": {
			object: edits(unmarked, orphan, wroteMark(ours), wroteLabel("copier")), want: kept,
		},
		"no mark, the label is of two": {
			object: edits(unmarked, orphan, wroteLabel("copier"), wroteLabel(ours)), want: deleted,
		},
		"no mark, the label is of a former owner": {
			object: edits(unmarked, orphan, wroteLabel("manager")), want: deleted,
			config: func(c reconcilers.Config) reconcilers.Config { return c.WithFormerFieldOwners("manager") },
		},
		"no mark, the label is of the chosen owner": {
			object: edits(unmarked, orphan, wroteLabel("mine")), want: deleted,
			config: func(c reconcilers.Config) reconcilers.Config { c.FieldOwner = "mine"; return c },
		},
		"no mark, the cache has no fields": {
			object: edits(unmarked, orphan, wroteLabel("copier")), cached: edits(unmarked, orphan), want: kept,
		},

		"a generated name": {object: edits(marked("ConfigMap/default/for*/parent")), want: deleted},
		"a generated name, the mark is ours": {
			object: edits(marked("ConfigMap/default/for*/parent"), wroteMark(ours)), want: deleted,
		},
		"a generated name, a copy": {
			object: edits(marked("ConfigMap/default/for*/parent"), wroteMark("copier")), want: kept,
		},
		"a generated name, with another prefix": {object: edits(marked("ConfigMap/default/far*/parent")), want: kept},
		"a generated name, the cache has no fields": {
			object: edits(marked("ConfigMap/default/for*/parent"), wroteMark("copier")),
			cached: edits(marked("ConfigMap/default/for*/parent")), want: kept,
		},
		"the cache has an old mark": {
			object: edits(marked("ConfigMap/default/child/parent")), cached: edits(), want: kept,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.record == "" {
				tc.record = `{"kinds":["ConfigMap"]}`
			}
			parent := newResource(recorded(tc.record), settled)
			former := newConfigMap("former", append(edits(inventoried), tc.object...)...)
			cached := former
			if tc.cached != nil {
				cached = newConfigMap("former", append(edits(inventoried), tc.cached...)...)
			}
			w := newWorld(t, parent, newConfigMap("child", inventoried), cached)
			mgr := newManager(t, w, nil)
			config := configFor(w, mgr)
			live := newWorld(t, parent, former)
			config.APIReader = live.Config.APIReader
			if tc.config != nil {
				config = tc.config(config)
			}
			r := &resourceReconciler{Config: config, Reconciler: &prune{
				Inventory: inventoryKey, Reconciler: newChild(func(*fixture.Resource, string) {}),
			}}
			wantErr(t, nil, r.SetupWithManager(t.Context(), mgr))
			object := former.Namespace + "/former"
			event := `event default/test Warning PruneKept: Kept, not ours: ConfigMap ` +
				strings.TrimPrefix(object, "default/") + `. The label fixture.trueup.dev/inventory=parent is a copy`
			want := map[string][]string{
				kept: {event}, untouched: nil,
				deleted: {
					"delete ConfigMap " + object, `event default/test Normal Deleted: Deleted ConfigMap "former"`,
				},
			}[tc.want]
			_, err := r.Reconcile(t.Context(), requestFor(parent))
			wantErr(t, nil, err)
			got := slices.DeleteFunc(w.Writes(), func(line string) bool { return strings.HasPrefix(line, "patch Resource") })
			equal(t, "writes and events", want, got)

			// The same again says nothing more, and does not read the object again.
			live.Trace()
			_, err = r.Reconcile(t.Context(), requestFor(parent))
			wantErr(t, nil, err)
			got = slices.DeleteFunc(w.Writes(), func(line string) bool { return strings.HasPrefix(line, "patch Resource") })
			equal(t, "writes and events of the second request", nil, got)
			if tc.want != deleted {
				equal(t, "live reads of the second request", 0, live.Count("live get ConfigMap"))
			}
		})
	}
}

func edits(edits ...func(*corev1.ConfigMap)) []func(*corev1.ConfigMap) {
	return slices.Clip(append([]func(*corev1.ConfigMap){}, edits...))
}

// A copy that was removed and came back is reported again.
func TestPrune_ReportsCopiesAgain(t *testing.T) {
	parent := newResource(recorded(`{"kinds":["ConfigMap"]}`), settled)
	w := newWorld(t, parent, newConfigMap("child", inventoried))
	mgr := newManager(t, w, nil)
	r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: &prune{
		Inventory: inventoryKey, Reconciler: newChild(func(*fixture.Resource, string) {}),
	}}
	wantErr(t, nil, r.SetupWithManager(t.Context(), mgr))
	for _, step := range []struct {
		name     string
		add      bool
		warnings int
	}{{"one", true, 1}, {"two", true, 1}, {"two", false, 1}, {"one", false, 0}, {"one", true, 1}} {
		backup := newConfigMap(step.name, inventoried, marked("ConfigMap/default/child/parent/owned"))
		backup.ResourceVersion = ""
		if step.add {
			wantErr(t, nil, w.Server.Create(t.Context(), backup))
		} else {
			wantErr(t, nil, w.Server.Delete(t.Context(), backup))
		}
		w.Trace()
		_, err := r.Reconcile(t.Context(), requestFor(parent))
		wantErr(t, nil, err)
		equal(t, "warnings", step.warnings, w.Count("event default/test Warning PruneKept"))
	}
}

// A long list of copies is cut.
func TestPrune_ManyCopies(t *testing.T) {
	parent := newResource(recorded(`{"kinds":["ConfigMap"]}`), settled)
	given := []client.Object{parent, newConfigMap("child", inventoried)}
	for _, name := range strings.Split("abcdefghijkl", "") {
		given = append(given, newConfigMap(name, inventoried, marked("ConfigMap/default/child/parent/owned")))
	}
	w := newWorld(t, given...)
	mgr := newManager(t, w, nil)
	r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: &prune{
		Inventory: inventoryKey, Reconciler: newChild(func(*fixture.Resource, string) {}),
	}}
	wantErr(t, nil, r.SetupWithManager(t.Context(), mgr))
	_, err := r.Reconcile(t.Context(), requestFor(parent))
	wantErr(t, nil, err)
	equal(t, "events", []string{
		"event default/test Warning PruneKept: Kept, not ours: ConfigMap a, ConfigMap b, ConfigMap c, ConfigMap d, " +
			"ConfigMap e, ConfigMap f, ConfigMap g, ConfigMap h, ConfigMap i, ConfigMap j and 2 more. " +
			"The label fixture.trueup.dev/inventory=parent is a copy",
	}, w.Writes())
}

// The mark names the child, also if its name is generated, and is kept by functions that do not copy annotations.
func TestPrune_Marks(t *testing.T) {
	long := strings.Repeat("a", 60)
	for name, tc := range map[string]struct {
		desired func(*corev1.ConfigMap)
		given   []func(*corev1.ConfigMap)
		unowned bool
		want    string
		writes  int
	}{
		"named":    {want: "ConfigMap/default/child/parent/owned", writes: 1},
		"no owner": {unowned: true, want: "ConfigMap/default/child/parent", writes: 1},
		"generated": {
			desired: generated("child"), want: "ConfigMap/default/child*/parent/owned", writes: 1,
		},
		"generated with a long prefix": {
			desired: generated(long), want: "ConfigMap/default/" + long[:58] + "*/parent/owned", writes: 1,
		},
		"marked":        {given: edits(inventoried), want: "ConfigMap/default/child/parent/owned"},
		"from before":   {given: edits(inventoried, unmarked), want: "ConfigMap/default/child/parent/owned", writes: 1},
		"without label": {given: edits(), want: "ConfigMap/default/child/parent/owned", writes: 1},
		"a wrong mark": {
			given: edits(inventoried, marked("Service/default/child/parent")), want: "ConfigMap/default/child/parent/owned",
			writes: 1,
		},
		"generated, marked": {
			given: edits(inventoried, marked("ConfigMap/default/chi*/parent/owned")), desired: generated("chi"),
			want: "ConfigMap/default/chi*/parent/owned",
		},
		"generated, with a name before": {
			given: edits(inventoried), desired: generated("chi"), want: "ConfigMap/default/child/parent/owned",
		},
		"generated, with another prefix before": {
			given: edits(inventoried, marked("ConfigMap/default/chi*/parent/owned")), desired: generated("other-"),
			want: "ConfigMap/default/chi*/parent/owned",
		},
		"generated, with another prefix and no mark before": {
			given: edits(inventoried, unmarked), desired: generated("other-"),
			want: "ConfigMap/default/child/parent/owned", writes: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			parent := newResource(recorded(`{"kinds":["ConfigMap"]}`), settled)
			given := []client.Object{parent}
			if tc.given != nil {
				given = append(given, newConfigMap("child", tc.given...))
			}
			w := newWorld(t, given...)
			mgr := newManager(t, w, nil)
			stored := ""
			r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: &prune{
				Inventory: inventoryKey, Reconciler: &childReconciler{
					SkipOwnerReference: tc.unowned,
					ListOptions: func(context.Context, *fixture.Resource) []client.ListOption {
						return []client.ListOption{client.InNamespace("default")}
					},
					OurChild: func(*fixture.Resource, *corev1.ConfigMap) bool { return true },
					DesiredChild: func(context.Context, *fixture.Resource) (*corev1.ConfigMap, error) {
						desired := wanted("child")
						if tc.desired != nil {
							tc.desired(desired)
						}
						return desired, nil
					},
					MergeBeforeUpdate: func(current, desired *corev1.ConfigMap) { current.Data = desired.Data },
					ReflectChildStatusOnParent: func(
						_ context.Context, _ *fixture.Resource, child *corev1.ConfigMap, _ error,
					) {
						stored = child.Annotations[inventoryKey]
					},
				},
			}}
			wantErr(t, nil, r.SetupWithManager(t.Context(), mgr))
			for _, writes := range []int{tc.writes, 0} {
				w.Trace()
				_, err := r.Reconcile(t.Context(), requestFor(parent))
				wantErr(t, nil, err)
				equal(t, "mark", tc.want, stored)
				equal(t, "writes", writes, w.Count("create ConfigMap")+w.Count("update ConfigMap"))
			}
		})
	}
}

func generated(prefix string) func(*corev1.ConfigMap) {
	return func(cm *corev1.ConfigMap) { cm.Name, cm.GenerateName = "", prefix }
}

// An object that is released has neither the label nor the mark: it can be adopted by another resource.
func TestPrune_Release(t *testing.T) {
	parent := newResource(recorded(`{"kinds":["ConfigMap"]}`), settled)
	w := newWorld(t, parent, newConfigMap("child", inventoried))
	mgr := newManager(t, w, nil)
	child := newChild(func(*fixture.Resource, string) {})
	child.DesiredChild = desire(nil, nil)
	child.Release = func(context.Context, *fixture.Resource, *corev1.ConfigMap) bool { return true }
	r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: &prune{Inventory: inventoryKey, Reconciler: child}}
	wantErr(t, nil, r.SetupWithManager(t.Context(), mgr))
	_, err := r.Reconcile(t.Context(), requestFor(parent))
	wantErr(t, nil, err)
	released := stored(w, newConfigMap("child"))
	equal(t, "labels", nil, released.Labels)
	equal(t, "annotations", nil, released.Annotations)
}

// An annotation that was changed by hand blocks neither a reconcile nor a deletion. What set-up knows is pruned.
func TestPrune_BrokenInventory(t *testing.T) {
	for name, broken := range map[string]string{
		"no JSON": `kinds`, "another value": `["ConfigMap"]`, "another type": `{"kinds":"ConfigMap"}`, "empty": ``,
	} {
		t.Run(name, func(t *testing.T) {
			parent := newResource(recorded(broken), settled)
			w := newWorld(t, parent, newConfigMap("child", inventoried), newConfigMap("former", inventoried))
			mgr := newManager(t, w, nil)
			r := &resourceReconciler{Config: configFor(w, mgr), Reconciler: &prune{
				Inventory: inventoryKey, Reconciler: newChild(func(*fixture.Resource, string) {}),
			}}
			wantErr(t, nil, r.SetupWithManager(t.Context(), mgr))
			for _, lines := range []int{4, 0} { // patch, warning, delete, event
				_, err := r.Reconcile(t.Context(), requestFor(parent))
				wantErr(t, nil, err)
				writes := w.Writes()
				equal(t, "number of writes and events", lines, len(writes))
				equal(t, "record", `{"kinds":["ConfigMap"]}`, stored(w, parent).Annotations[inventoryKey])
				if stored(w, newConfigMap("former")) != nil {
					t.Errorf("not pruned: %q", writes)
				}
			}
		})
	}
}
