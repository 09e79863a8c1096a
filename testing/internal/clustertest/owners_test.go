// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	rtesting "trueup.dev/testing"
)

func ownedBy(obj *fixture.Resource, controller bool) metav1.OwnerReference {
	ref := metav1.OwnerReference{APIVersion: "fixture.trueup.dev/v1", Kind: "Resource", Name: obj.Name, UID: obj.UID}
	if controller {
		ref.Controller, ref.BlockOwnerDeletion = new(true), new(true)
	}
	return ref
}

// stranger is an owner that the case does not have.
var stranger = metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "stranger", UID: "who-knows"}

// The garbage collector deletes objects with owners that do not exist under the given UID. The objects must be kept,
// and the case must see the owners that it has set.
func TestOwners(t *testing.T) {
	for _, uid := range []types.UID{"", "uid-of-the-case"} {
		t.Run("uid "+string(uid), func(t *testing.T) {
			owner := newResource("owner")
			owner.UID = uid
			given := newConfigMap("given")
			given.OwnerReferences = []metav1.OwnerReference{stranger, ownedBy(owner, true)}
			created := newConfigMap("created")
			created.OwnerReferences = []metav1.OwnerReference{ownedBy(owner, true), stranger}
			updated := newConfigMap("given")
			updated.OwnerReferences = []metav1.OwnerReference{ownedBy(owner, false)}
			runOnBoth(t, testCase{
				// the owner is listed last, but must be created first
				GivenObjects:  []client.Object{given, owner},
				ExpectCreates: []client.Object{created},
				ExpectUpdates: []client.Object{updated},
			}, func(w *world) {
				seen := func(name string, want []metav1.OwnerReference) {
					w.Helper()
					read := newConfigMap(name)
					w.must(w.Get(w.ctx, client.ObjectKeyFromObject(read), read))
					if diff := cmp.Diff(want, read.OwnerReferences); diff != "" {
						w.Errorf("owners of %s as the case sees them (-want +got):\n%s", name, diff)
					}
				}
				seen("given", given.OwnerReferences)
				w.must(w.Create(w.ctx, created.DeepCopy()))
				seen("created", created.OwnerReferences)
				w.assertOwners("given", "owner")
				w.assertOwners("created", "owner")

				read := newConfigMap("given")
				w.must(w.Get(w.ctx, client.ObjectKeyFromObject(read), read))
				read.OwnerReferences = updated.OwnerReferences
				w.must(w.Update(w.ctx, read))
				seen("given", updated.OwnerReferences)
			})
		})
	}
}

// assertOwners asserts that an object in the cluster has exactly these owners, and that they exist.
func (w *world) assertOwners(name string, owners ...string) {
	w.Helper()
	if w.cluster == nil {
		return
	}
	stored := newConfigMap(name)
	w.must(w.cluster.Get(w.ctx, client.ObjectKeyFromObject(stored), stored))
	var names []string
	for _, ref := range stored.OwnerReferences {
		owner := newResource(ref.Name)
		w.must(w.cluster.Get(w.ctx, client.ObjectKeyFromObject(owner), owner))
		if ref.UID != owner.UID {
			w.Errorf("%s is owned by %v, whose uid is %s", name, ref, owner.UID)
		}
		names = append(names, ref.Name)
	}
	if diff := cmp.Diff(owners, names); diff != "" {
		w.Errorf("owners of %s in the cluster (-want +got):\n%s", name, diff)
	}
}

func TestPatchedOwners(t *testing.T) {
	first, second := newResource("first"), newResource("second")
	first.UID, second.UID = "uid-1", "uid-2"
	given := newConfigMap("given")
	given.OwnerReferences = []metav1.OwnerReference{ownedBy(first, false), stranger}
	for name, tt := range map[string]struct {
		given []metav1.OwnerReference
		want  []metav1.OwnerReference
		real  []string
		patch func(base client.Object) client.Patch
		ref   string
	}{
		"Merge": {
			want: []metav1.OwnerReference{
				ownedBy(second, false), ownedBy(first, false), stranger,
			}, real: []string{"second", "first"},
			patch: client.MergeFrom,
			ref: `{"metadata":{"ownerReferences":[` +
				`{"apiVersion":"fixture.trueup.dev/v1","kind":"Resource","name":"second","uid":"uid-2"},` +
				`{"apiVersion":"fixture.trueup.dev/v1","kind":"Resource","name":"first","uid":"uid-1"},` +
				`{"apiVersion":"apps/v1","kind":"Deployment","name":"stranger","uid":"who-knows"}]}}`,
		},
		"Merge, none": {
			want: nil, real: nil,
			patch: client.MergeFrom,
			ref:   `{"metadata":{"ownerReferences":null}}`,
		},
		"Strategic": {
			want: []metav1.OwnerReference{stranger, ownedBy(second, false)}, real: []string{"second"},
			patch: func(base client.Object) client.Patch { return client.StrategicMergeFrom(base) },
			ref: `{"metadata":{"$setElementOrder/ownerReferences":[{"uid":"who-knows"},{"uid":"uid-2"}],"ownerReferences":[` +
				`{"apiVersion":"fixture.trueup.dev/v1","kind":"Resource","name":"second","uid":"uid-2"},` +
				`{"$patch":"delete","uid":"uid-1"}]}}`,
		},
		"JSON": {
			given: []metav1.OwnerReference{ownedBy(first, false)},
			want:  []metav1.OwnerReference{ownedBy(first, false), ownedBy(second, false)}, real: []string{"first", "second"},
			patch: func(client.Object) client.Patch {
				return client.RawPatch(types.JSONPatchType, []byte(jsonPatchOfOwners))
			},
			ref: jsonPatchOfOwners,
		},
	} {
		t.Run(name, func(t *testing.T) {
			given := given.DeepCopy()
			if tt.given != nil {
				given.OwnerReferences = tt.given
			}
			runOnBoth(t, testCase{
				GivenObjects: []client.Object{given, first, second},
				ExpectPatches: []rtesting.PatchRef{{
					Kind: "ConfigMap", Namespace: namespace, Name: "given", PatchType: tt.patch(given).Type(), Patch: []byte(tt.ref),
				}},
			}, func(w *world) {
				read := newConfigMap("given")
				w.must(w.Get(w.ctx, client.ObjectKeyFromObject(read), read))
				base := read.DeepCopy()
				read.OwnerReferences = tt.want
				w.must(w.Patch(w.ctx, read, tt.patch(base)))
				if diff := cmp.Diff(tt.want, read.OwnerReferences); diff != "" {
					w.Errorf("as the case sees them (-want +got):\n%s", diff)
				}
				w.assertOwners("given", tt.real...)
			})
		})
	}
}

const jsonPatchOfOwners = `[{"op":"test","path":"/metadata/ownerReferences/0/uid","value":"uid-1"},` +
	`{"op":"add","path":"/metadata/ownerReferences/-","value":{"apiVersion":"fixture.trueup.dev/v1","kind":"Resource","name":"second","uid":"uid-2"}}]`
