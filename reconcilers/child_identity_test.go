// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
	rtesting "trueup.dev/testing"
)

// identifiedByName sets an OurChild function that identifies the child by name.
func identifiedByName(r *childReconciler) {
	r.OurChild = func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.Name != "other" }
}

// identifiedByLabel sets an OurChild function that identifies children by label.
func identifiedByLabel(r *childSetReconciler) {
	r.OurChild = func(_ *fixture.Resource, child *corev1.ConfigMap) bool { return child.Labels["id"] != "" }
}

// unidentified returns the event about unidentified ConfigMaps.
func unidentified(names string) rtesting.Event {
	return warning("UnidentifiedChildren",
		"Left ConfigMap "+names+` alone: not identified as a child, define OurChild in ChildReconciler "ConfigMapChildReconciler"`)
}

// A child is identified by its desired name. Without OurChild, other objects that the resource controls are not
// changed.
func TestChildReconciler_KeepsTheChildOfTheDesiredName(t *testing.T) {
	parent, reflected := newResource(), newResource(reflecting(`"child"`))
	child, drifted := newConfigMap("child"), newConfigMap("child", drift)
	password, token := newConfigMap("generated-password"), newConfigMap("token")
	generated := changes(func(r *childReconciler) {
		r.DesiredChild = desire(rtesting.With(wanted(""), func(cm *corev1.ConfigMap) { cm.GenerateName = "child-" }), nil)
	})
	subReconcilerTests{
		// For example, a Secret with a generated password must not be deleted.
		"another object": {
			Resource: parent, GivenObjects: objects{password, child}, ExpectResource: reflected,
			ExpectEvents: events{unidentified("generated-password")},
		},
		"other objects and drift": {
			Resource: parent, GivenObjects: objects{password, drifted, token}, ExpectResource: reflected,
			ExpectUpdates: objects{child}, ExpectEvents: events{unidentified("generated-password, token"), updatedChild},
		},
		// It is not overwritten either.
		"another object, before there is a child": {
			Resource: parent, GivenObjects: objects{password}, ExpectResource: reflected,
			ExpectCreates: objects{rtesting.With(wanted("child"), claimed)},
			ExpectEvents:  events{unidentified("generated-password"), createdChild},
		},
		// Nothing tells that another client made one of them.
		"several and none desired": {
			Resource: parent, GivenObjects: objects{password, child}, Metadata: desiring(nil, nil),
			ExpectDeletes: deletes("child", "generated-password"), ExpectResource: newResource(reflecting("nothing")),
			ExpectEvents: events{deletedChild, eventFor("Deleted", "generated-password")},
		},
		// The new child is created when the old one no longer exists.
		"another object, and the child is being deleted": {
			Resource: parent, GivenObjects: objects{password, newConfigMap("child", deleting)}, ExpectResource: reflected,
			ExpectEvents: events{unidentified("generated-password")},
		},
		"a generated name": {
			Resource: parent, GivenObjects: objects{newConfigMap("child-x7k"), password}, Metadata: generated,
			ExpectResource: newResource(reflecting(`"child-x7k"`)), ExpectEvents: events{unidentified("generated-password")},
		},
		// The garbage collector deletes all objects of the owner.
		"the parent is being deleted": {
			Resource:      newResource(terminating, finalizer("hold")),
			GivenObjects:  objects{child, password},
			ExpectDeletes: deletes("child", "generated-password"),
			ExpectEvents:  events{deletedChild, eventFor("Deleted", "generated-password")},
		},
		// With OurChild, the user declares all of these objects to be the child.
		"OurChild accepts several": {
			Resource: parent, GivenObjects: objects{newConfigMap("child-of-old"), child, newConfigMap("other")},
			Metadata: changes(identifiedByName), ExpectResource: reflected,
			ExpectDeletes: deletes("child-of-old"), ExpectEvents: events{eventFor("Deleted", "child-of-old")},
		},
		"OurChild accepts one of another name": {
			Resource: parent, GivenObjects: objects{newConfigMap("child-of-old", drift)}, Metadata: changes(identifiedByName),
			ExpectUpdates: objects{newConfigMap("child-of-old")}, ExpectEvents: events{eventFor("Updated", "child-of-old")},
			ExpectResource: newResource(reflecting(`"child-of-old"`)),
		},
	}.Run(t, scheme, childFactory)
}

// Users' tests pin this: what ListOptions select in another namespace is the child, although its namespace is not the
// desired one.
func TestChildReconciler_ListOptionsOfAnotherNamespace(t *testing.T) {
	elsewhere := func(r *childReconciler) {
		r.ListOptions = func(context.Context, *fixture.Resource) []client.ListOption {
			return []client.ListOption{client.InNamespace("elsewhere")}
		}
	}
	moved := newConfigMap("child", func(cm *corev1.ConfigMap) { cm.Namespace = "elsewhere" })
	subReconcilerTests{
		"in sync": {
			Resource: newResource(), GivenObjects: objects{moved}, Metadata: changes(elsewhere),
			ExpectResource: newResource(reflecting(`"child"`)),
		},
		"not desired": {
			Resource: newResource(), GivenObjects: objects{moved}, ExpectResource: newResource(reflecting("nothing")),
			Metadata:      changes(elsewhere, func(r *childReconciler) { r.DesiredChild = desire(nil, nil) }),
			ExpectDeletes: []rtesting.DeleteRef{{Kind: "ConfigMap", Namespace: "elsewhere", Name: "child"}},
			ExpectEvents:  events{deletedChild},
		},
	}.Run(t, scheme, childFactory)
}

func TestChildReconciler_WarnsOnceAboutUnidentifiedObjects(t *testing.T) {
	w := newWorld(t, newConfigMap("child"), newConfigMap("generated-password"))
	r := newChildReconciler(w)
	for range 3 {
		_, err := r.Reconcile(w.Context(), newResource())
		wantErr(t, nil, err)
	}
	const event = "event default/test Warning UnidentifiedChildren: Left ConfigMap generated-password alone: " +
		`not identified as a child, define OurChild in ChildReconciler "ConfigMapChildReconciler"`
	equal(t, "writes", []string{event, `reflect "child"`, `reflect "child"`, `reflect "child"`}, w.Writes())
}

// adviceToMerge is the hint for a missing object manager.
const adviceToMerge = ": set MergeBeforeUpdate to use the default UpdatingObjectManager"

// Two reconcilers of one tree that cannot identify their children would overwrite the same child alternately.
func TestSetup_RejectsUnidentifiedChildren(t *testing.T) {
	w := newWorld(t)
	const conflict = `must implement OurChild: another reconciler, `
	const lacking = "manages children of kind ConfigMap too, and without OurChild each reconciler also manages the " +
		"children of the other"
	child := func(name string, edits ...func(*childReconciler)) reconcilers.SubReconciler[*fixture.Resource] {
		return newChildReconciler(w, append(edits, func(r *childReconciler) { r.Name = name })...)
	}
	set := func(name string, edits ...func(*childSetReconciler)) reconcilers.SubReconciler[*fixture.Resource] {
		return newChildSetReconciler(w, append(edits, func(r *childSetReconciler) { r.Name = name })...)
	}
	branches := func(
		then, otherwise reconcilers.SubReconciler[*fixture.Resource],
	) reconcilers.SubReconciler[*fixture.Resource] {
		return &reconcilers.IfThen[*fixture.Resource]{
			If: func(context.Context, *fixture.Resource) bool { return true }, Then: then, Else: otherwise,
		}
	}
	shared := child("shared")
	for name, tc := range map[string]struct {
		tree sequence
		want string
	}{
		"two without": {
			sequence{child("a"), child("b")}, `ChildReconciler "b" ` + conflict + `ChildReconciler "a", ` + lacking,
		},
		"the first without": {
			sequence{child("a"), child("b", identifiedByName)},
			`ChildReconciler "a" ` + conflict + `ChildReconciler "b", ` + lacking,
		},
		"the second without": {
			sequence{child("a", identifiedByName), child("b")},
			`ChildReconciler "b" ` + conflict + `ChildReconciler "a", ` + lacking,
		},
		"a set": {
			sequence{child("a", identifiedByName), set("b")},
			`ChildSetReconciler "b" ` + conflict + `ChildReconciler "a", ` + lacking,
		},
		"before a branch": {
			sequence{child("a"), branches(child("b"), nil)},
			`ChildReconciler "b" ` + conflict + `ChildReconciler "a", ` + lacking,
		},
		"within a branch": {
			sequence{branches(sequence{child("a"), child("b")}, nil)},
			`ChildReconciler "b" ` + conflict + `ChildReconciler "a", ` + lacking,
		},
		"both with":           {sequence{child("a", identifiedByName), set("b", identifiedByLabel)}, ""},
		"other kinds":         {sequence{child("a"), newSecretReconciler()}, ""},
		"exclusive branches":  {sequence{branches(child("a"), branches(child("b"), set("c")))}, ""},
		"no owner references": {sequence{child("a"), child("b", withoutOwner)}, ""},
		"other clusters": {sequence{child("a"), &reconcilers.WithConfig[*fixture.Resource]{
			Config:     func(_ context.Context, config reconcilers.Config) (reconcilers.Config, error) { return config, nil },
			Reconciler: child("b"),
		}}, ""},
		"one reconciler in several places":   {sequence{shared, branches(shared, nil)}, ""},
		"list options identify the children": {sequence{child("a", withListOptions), child("b", withListOptions)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			mgr := newManager(t, w, newEventCache(w.Scheme))
			err := (&resourceReconciler{
				Config: configFor(w, mgr), Reconciler: tc.tree,
			}).SetupWithManager(context.Background(), mgr)
			if tc.want == "" {
				wantErr(t, nil, err)
				return
			}
			if err == nil {
				t.Fatal("setup returned no error")
			}
			contains(t, err.Error(), tc.want)
		})
	}
}

func withListOptions(r *childReconciler) {
	withoutOwner(r)
	r.SkipOwnerReference, r.OurChild = false, nil
}

// The first of two reconcilers with the same finalizer to finish would remove it for both.
func TestSetup_RejectsASharedFinalizer(t *testing.T) {
	w := newWorld(t)
	finalized := func(name, finalizer string) reconcilers.SubReconciler[*fixture.Resource] {
		return &reconcilers.WithFinalizer[*fixture.Resource]{Name: name, Finalizer: finalizer, Reconciler: sequence{}}
	}
	managed := newChildReconciler(w, withoutOwner, func(r *childReconciler) {
		r.Name, r.ChildObjectManager = "managed", &configMaps{Finalizer: "test/f", MergeBeforeUpdate: mergeData}
	})
	const of = `, uses "test/f" too, and the first of them to finish removes it for both`
	for name, tc := range map[string]struct {
		tree sequence
		want string
	}{
		"the same name": {
			sequence{finalized("a", "test/f"), finalized("b", "test/f")},
			`WithFinalizer "b" must define a Finalizer of its own: another reconciler, WithFinalizer "a"` + of,
		},
		"an object manager's": {
			sequence{finalized("a", "test/f"), managed},
			`ChildReconciler "managed" must define a Finalizer of its own: another reconciler, WithFinalizer "a"` + of,
		},
		"a set's": {
			sequence{
				newChildSetReconciler(w, func(r *childSetReconciler) { r.Name, r.Finalizer = "set", "test/f" }),
				finalized("b", "test/f"),
			},
			`WithFinalizer "b" must define a Finalizer of its own: another reconciler, ChildSetReconciler "set"` + of,
		},
		"different names": {sequence{finalized("a", "test/f"), finalized("b", "test/g")}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			mgr := newManager(t, w, newEventCache(w.Scheme))
			err := (&resourceReconciler{
				Config: configFor(w, mgr), Reconciler: tc.tree,
			}).SetupWithManager(context.Background(), mgr)
			if tc.want == "" {
				wantErr(t, nil, err)
				return
			}
			if err == nil {
				t.Fatal("setup returned no error")
			}
			contains(t, err.Error(), tc.want)
		})
	}
}

// A child without a name is an error. It does not take over the only sibling.
func TestChildReconciler_DesiredChildWithoutName(t *testing.T) {
	nameless := changes(func(r *childReconciler) { r.DesiredChild = desire(wanted(""), nil) })
	problem := failsWithText("ConfigMap has no name: set metadata.name or metadata.generateName")
	subReconcilerTests{
		"one object": {
			Resource: newResource(), GivenObjects: objects{newConfigMap("token")}, Metadata: nameless,
			ShouldErr: true, Verify: problem,
		},
		"several objects": {
			Resource: newResource(), GivenObjects: objects{newConfigMap("token"), newConfigMap("password")},
			Metadata: nameless, ShouldErr: true, Verify: problem,
		},
	}.Run(t, scheme, childFactory)
}

func TestChildReconciler_DesiredChildWithoutNamespace(t *testing.T) {
	w := newWorld(t)
	mgr := newManager(t, w, newEventCache(w.Scheme))
	r := newChildReconciler(w, func(r *childReconciler) {
		r.DesiredChild = desire(rtesting.With(wanted("child"), func(cm *corev1.ConfigMap) { cm.Namespace = "" }), nil)
	})
	config := w.Config
	config.Client = fake.NewClientBuilder().WithScheme(w.Scheme).WithRESTMapper(mgr.GetRESTMapper()).Build()
	_, err := r.Reconcile(reconcilers.StashConfig(w.Context(), config), newResource())
	wantText(t, `ConfigMap "child" has no namespace: set it to the namespace of its owner, "default"`, err)
}
