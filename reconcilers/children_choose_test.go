// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
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

// adopting makes a ChildReconciler adopt objects with a label.
func adopting(r *childReconciler) {
	r.Adopt = func(_ context.Context, _ *fixture.Resource, cm *corev1.ConfigMap) bool {
		return cm.Labels["adopt"] == "me"
	}
}

// releasing makes a ChildReconciler release children with a label, and desires none.
func releasing(r *childReconciler) {
	r.DesiredChild = desire(nil, nil)
	r.Release = func(_ context.Context, _ *fixture.Resource, cm *corev1.ConfigMap) bool {
		return cm.Labels["adopt"] == "me"
	}
}

func labeled(cm *corev1.ConfigMap) { cm.Labels = map[string]string{"adopt": "me"} }

func ofAnother(cm *corev1.ConfigMap) {
	cm.OwnerReferences[0].UID, cm.OwnerReferences[0].Name = "another", "another"
}

// owners returns the patch of the owner references of the child.
func owners(list string) []rtesting.PatchRef {
	return []rtesting.PatchRef{{
		Kind: "ConfigMap", Namespace: "default", Name: "child", PatchType: types.MergePatchType,
		Patch: []byte(`{"metadata":{"ownerReferences":` + list + `,"resourceVersion":"999"}}`),
	}}
}

const ourReference = `{"apiVersion":"fixture.trueup.dev/v1","blockOwnerDeletion":true,"controller":true,"kind":"Resource",` +
	`"name":"test","uid":"parent"}`

func TestChildReconciler_Adopt(t *testing.T) {
	const otherReference = `{"apiVersion":"v1","kind":"Secret","name":"other","uid":"other"}`
	ownedByASecret := func(cm *corev1.ConfigMap) {
		cm.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: "other", UID: "other"}}
	}
	parent, reflected := newResource(), newResource(reflecting(`"child"`))
	refused := newConfigMap("child", labeled, ofAnother)
	unselected := newConfigMap("child", orphan)
	subReconcilerTests{
		// It gets an owner, and is then updated.
		"adopted": {
			Resource: parent, Metadata: changes(adopting), GivenObjects: objects{newConfigMap("child", orphan, labeled)},
			ExpectPatches:  owners("[" + ourReference + "]"),
			ExpectUpdates:  objects{newConfigMap("child")},
			ExpectEvents:   events{eventFor("Adopted", "child"), updatedChild},
			ExpectResource: reflected,
		},
		// Owners that are not controllers stay.
		"with another owner": {
			Resource: parent, Metadata: changes(adopting),
			GivenObjects:  objects{newConfigMap("child", ownedByASecret, labeled)},
			ExpectPatches: owners("[" + otherReference + "," + ourReference + "]"),
			ExpectUpdates: objects{newConfigMap("child", func(cm *corev1.ConfigMap) {
				ours := cm.OwnerReferences[0]
				ownedByASecret(cm)
				cm.OwnerReferences = append(cm.OwnerReferences, ours)
			})},
			ExpectEvents:   events{eventFor("Adopted", "child"), updatedChild},
			ExpectResource: reflected,
		},
		// An object that another controller owns is refused, and the reason is reflected.
		"of another controller": {
			Resource: parent, Metadata: changes(adopting), GivenObjects: objects{refused}, APIGivenObjects: objects{refused},
			ExpectTracks:   []rtesting.TrackRequest{rtesting.NewTrackRequest(refused, parent, scheme)},
			ExpectResource: newResource(reflecting(`nothing: ConfigMap "child" already exists and is controlled by Resource "another"`)),
		},
		// The rule does not select it.
		"not selected": {
			Resource: parent, Metadata: changes(adopting), GivenObjects: objects{unselected},
			APIGivenObjects: objects{unselected}, ExpectCreates: objects{rtesting.With(wanted("child"), claimed)},
			ExpectTracks: []rtesting.TrackRequest{rtesting.NewTrackRequest(unselected, parent, scheme)},
			ExpectEvents: events{warning("CreationFailed",
				`Failed to create ConfigMap "child": configmaps "child" already exists`)},
			ExpectResource: newResource(reflecting(`nothing: configmaps "child" already exists`)),
		},
		// Without an object, the child is created.
		"none": {
			Resource: parent, Metadata: changes(adopting), ExpectCreates: objects{rtesting.With(wanted("child"), claimed)},
			ExpectEvents: events{createdChild}, ExpectResource: reflected,
		},
		// A child that is no longer desired stays without an owner.
		"released": {
			Resource: parent, Metadata: changes(releasing), GivenObjects: objects{newConfigMap("child", labeled)},
			ExpectPatches: owners("null"), ExpectEvents: events{eventFor("Released", "child")},
			ExpectResource: newResource(reflecting("nothing")),
		},
		// The rule does not select it.
		"not released": {
			Resource: parent, Metadata: changes(releasing), GivenObjects: objects{newConfigMap("child")},
			ExpectDeletes: deletes("child"), ExpectEvents: events{deletedChild},
			ExpectResource: newResource(reflecting("nothing")),
		},
	}.Run(t, scheme, childFactory)
}

// A parent that the cache still has, but that is being deleted, adopts nothing.
func TestChildReconciler_AdoptByADeletedParent(t *testing.T) {
	parent := newResource()
	deleted := newResource(finalizer("hold"))
	deleted.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	stale := fake.NewClientBuilder().WithScheme(scheme).
		WithObjects(parent, newConfigMap("child", orphan, labeled)).WithStatusSubresource(parent).Build()
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(deleted).Build()
	child := newChild(showReflected)
	adopting(child)
	root := &reconcilers.ResourceReconciler[*fixture.Resource]{
		Reconciler: child,
		Config:     reconcilers.Config{Client: stale, APIReader: live, Recorder: &record.FakeRecorder{}},
	}
	_, err := root.Reconcile(t.Context(), reconcilers.Request{NamespacedName: client.ObjectKeyFromObject(parent)})
	if err == nil || !strings.Contains(err.Error(), "was deleted: it gets no child") {
		t.Errorf("error %v", err)
	}
	object := &corev1.ConfigMap{}
	if err := stale.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "child"}, object); err != nil {
		t.Fatal(err)
	}
	if len(object.OwnerReferences) != 0 {
		t.Errorf("owners %v", object.OwnerReferences)
	}
}

func TestChildReconciler_AdoptNeedsOwnerReferences(t *testing.T) {
	child := newChild(showReflected)
	adopting(child)
	withoutOwner(child)
	wantText(t, `ChildReconciler "ConfigMapChildReconciler" must not implement Adopt or Release since owner references are `+
		"not used", child.Validate(t.Context()))
}

func TestWhoHasTheNameOfTheChild(t *testing.T) {
	owned := newConfigMap("child", orphan)
	owned.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "Deployment", Name: "other", UID: "other", Controller: new(true)},
	}
	written := newConfigMap("child", orphan)
	now := metav1.Now()
	written.ManagedFields = []metav1.ManagedFieldsEntry{ // the times have only seconds
		{Manager: "controller-manager", Operation: metav1.ManagedFieldsOperationUpdate, Subresource: "status", Time: &now},
		{Manager: "kubectl-create", Operation: metav1.ManagedFieldsOperationUpdate, Time: &now},
	}
	for name, tc := range map[string]struct {
		given objects
		want  string
	}{
		"an object with a controller": {objects{owned}, `the existing object is controlled by Deployment "other"`},
		"an object without one":       {objects{newConfigMap("child", orphan)}, "the existing object has no controller"},
		"an object that others wrote": {objects{written}, `was first written by "kubectl-create" (Update)`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(tc.given, newResource())...)
			r := &resourceReconciler{Config: w.Config, Reconciler: newChildReconciler(w)}
			built, finished := observed(t, w, r)
			if _, err := built.Reconcile(t.Context(), testRequest); err != nil {
				t.Fatal(err)
			}
			if !finished.Failed() || len(finished.Refused) != 1 {
				t.Fatalf("got failed %v, refused %v", finished.Failed(), finished.Refused)
			}
			refused := finished.Refused[0]
			if refused.Object != "ConfigMap default/child" || !strings.HasSuffix(refused.Step, "ChildReconciler") {
				t.Errorf("got %s", refused.Origin())
			}
			if got := refused.Err.Error(); !strings.Contains(got, "already exists; ") || !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
