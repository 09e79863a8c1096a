// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrs "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	rtesting "trueup.dev/testing"
)

// known is an object with all metadata that a server usually sets.
func known() *corev1.ConfigMap {
	cm := newConfigMap("known")
	cm.UID = "uid-of-the-case"
	cm.ResourceVersion = "41"
	cm.Generation = 7
	cm.CreationTimestamp = metav1.Unix(1000, 0)
	cm.Data = map[string]string{"a": "1"}
	return cm
}

func TestIdentityIsThatOfTheCase(t *testing.T) {
	runOnBoth(t, testCase{GivenObjects: []client.Object{known()}}, func(w *world) {
		key := client.ObjectKeyFromObject(known())
		want := known()
		typed := &corev1.ConfigMap{}
		w.must(w.Get(w.ctx, key, typed))
		if diff := cmp.Diff(want, typed); diff != "" {
			w.Errorf("typed (-want +got):\n%s", diff)
		}
		list := &corev1.ConfigMapList{}
		w.must(w.List(w.ctx, list, client.InNamespace(namespace)))
		if diff := cmp.Diff([]corev1.ConfigMap{*want}, list.Items); diff != "" {
			w.Errorf("list (-want +got):\n%s", diff)
		}
		loose := &unstructured.Unstructured{}
		loose.SetAPIVersion("v1")
		loose.SetKind("ConfigMap")
		w.must(w.Get(w.ctx, key, loose))
		wantLoose := map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{
				"namespace": namespace, "name": "known", "uid": "uid-of-the-case", "resourceVersion": "41", "generation": int64(7),
				"creationTimestamp": "1970-01-01T00:16:40Z",
			},
			"data": map[string]any{"a": "1"},
		}
		if diff := cmp.Diff(wantLoose, loose.Object); diff != "" {
			w.Errorf("unstructured (-want +got):\n%s", diff)
		}
		metadata := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}}
		w.must(w.Get(w.ctx, key, metadata))
		if diff := cmp.Diff(
			&metav1.PartialObjectMetadata{TypeMeta: metadata.TypeMeta, ObjectMeta: want.ObjectMeta}, metadata,
		); diff != "" {
			w.Errorf("metadata (-want +got):\n%s", diff)
		}
	})
}

func TestVersionsCountFromTheGivenOne(t *testing.T) {
	runOnBoth(t, testCase{
		GivenObjects:  []client.Object{known()},
		ExpectUpdates: []client.Object{changed(known(), "2"), changed(known(), "3"), changed(known(), "stale")},
	}, func(w *world) {
		first := changed(known(), "2")
		w.must(w.Update(w.ctx, first))
		if first.ResourceVersion != "42" {
			w.Errorf("version %s after an update, want 42", first.ResourceVersion)
		}
		w.must(w.Update(w.ctx, changed(first.DeepCopy(), "3")))
		read := known()
		w.must(w.Get(w.ctx, client.ObjectKeyFromObject(read), read))
		want := changed(known(), "3")
		want.ResourceVersion = "43"
		if diff := cmp.Diff(want, read); diff != "" {
			w.Errorf("after two updates (-want +got):\n%s", diff)
		}
		if err := w.Update(w.ctx, changed(first, "stale")); !apierrs.IsConflict(err) {
			w.Errorf("an update of a version that is not the last one returns %v, want a conflict", err)
		}
	})
}

func changed(cm *corev1.ConfigMap, value string) *corev1.ConfigMap {
	cm.Data = map[string]string{"a": value}
	return cm
}

func TestPatchesWithALock(t *testing.T) {
	for _, lockedPatch := range []struct {
		name      string
		patchType types.PatchType
		make      func(base client.Object) client.Patch
		refs      []string
	}{
		{"Merge", types.MergePatchType, func(base client.Object) client.Patch {
			return client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
		}, []string{
			`{"data":{"a":"2"},"metadata":{"resourceVersion":"41"}}`,
			`{"data":{"a":"3"},"metadata":{"resourceVersion":"42"}}`,
			`{"data":{"a":"stale"},"metadata":{"resourceVersion":"41"}}`,
		}},
		{"Strategic", types.StrategicMergePatchType, func(base client.Object) client.Patch {
			return client.StrategicMergeFrom(base, client.MergeFromWithOptimisticLock{})
		}, []string{
			`{"data":{"a":"2"},"metadata":{"resourceVersion":"41"}}`,
			`{"data":{"a":"3"},"metadata":{"resourceVersion":"42"}}`,
			`{"data":{"a":"stale"},"metadata":{"resourceVersion":"41"}}`,
		}},
	} {
		t.Run(lockedPatch.name, func(t *testing.T) {
			var expect []rtesting.PatchRef
			for _, ref := range lockedPatch.refs {
				expect = append(expect, rtesting.PatchRef{
					Kind: "ConfigMap", Namespace: namespace, Name: "known", PatchType: lockedPatch.patchType, Patch: []byte(ref),
				})
			}
			runOnBoth(t, testCase{
				GivenObjects: []client.Object{known()}, ExpectPatches: expect,
			}, func(w *world) {
				current := known()
				w.must(w.Get(w.ctx, client.ObjectKeyFromObject(current), current))
				for _, value := range []string{"2", "3"} {
					base := current.DeepCopy()
					w.must(w.Patch(w.ctx, changed(current, value), lockedPatch.make(base)))
				}
				if current.ResourceVersion != "43" || current.Data["a"] != "3" || current.UID != "uid-of-the-case" {
					w.Errorf("after two patches: %v", current)
				}
				if err := w.Patch(w.ctx, changed(known(), "stale"), lockedPatch.make(known())); !apierrs.IsConflict(err) {
					w.Errorf("a patch of a version that is not the last one returns %v, want a conflict", err)
				}
			})
		})
	}
}

func TestPreconditions(t *testing.T) {
	ref := rtesting.DeleteRef{Kind: "ConfigMap", Namespace: namespace, Name: "known"}
	runOnBoth(t, testCase{
		GivenObjects: []client.Object{known()}, ExpectDeletes: []rtesting.DeleteRef{ref, ref},
	}, func(w *world) {
		if err := w.Delete(w.ctx, known(), client.Preconditions{ResourceVersion: new("40")}); !apierrs.IsConflict(err) {
			w.Errorf("deleting another version returns %v, want a conflict", err)
		}
		w.must(w.Delete(w.ctx, known(), client.Preconditions{UID: new(known().UID), ResourceVersion: new("41")}))
		if err := w.Get(w.ctx, client.ObjectKeyFromObject(known()), known()); !apierrs.IsNotFound(err) {
			w.Errorf("after the deletion: %v", err)
		}
	})
}

// A created object has the metadata that the API in memory sets. Otherwise reconcilers would behave differently.
func TestCreated(t *testing.T) {
	for name, tt := range map[string]struct {
		realistic bool
		want      func(*fixture.Resource)
	}{
		"Default": {false, func(*fixture.Resource) {}},
		"Realistic": {true, func(r *fixture.Resource) {
			r.UID, r.Generation = "00000000-0000-0000-0000-000000000001", 1
			r.CreationTimestamp = metav1.NewTime(noon)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			created := newResource("created")
			created.Spec.Fields = map[string]string{"a": "1"}
			runOnBoth(t, testCase{
				Realistic: tt.realistic, ExpectCreates: []client.Object{created.DeepCopy()},
			}, func(w *world) {
				want := created.DeepCopy()
				want.ResourceVersion = "1"
				tt.want(want)
				sent := created.DeepCopy()
				w.must(w.Create(w.ctx, sent))
				read := &fixture.Resource{}
				w.must(w.Get(w.ctx, client.ObjectKeyFromObject(created), read))
				for what, got := range map[string]*fixture.Resource{"returned": sent, "read": read} {
					got.CreationTimestamp = metav1.NewTime(got.CreationTimestamp.UTC())
					if diff := cmp.Diff(want, got); diff != "" {
						w.Errorf("%s (-want +got):\n%s", what, diff)
					}
				}
			})
		})
	}
}
