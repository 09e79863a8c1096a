// SPDX-License-Identifier: Apache-2.0

package memapi_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestCreate(t *testing.T) {
	runRules(t, []rule{
		{"sets the fields of the server", func(w *world) {
			obj := configMap("a")
			obj.UID, obj.Generation, obj.CreationTimestamp = "mine", 7, metav1.Now()
			obj.DeletionTimestamp, obj.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(5))
			w.create(obj)
			want := configMap("a")
			want.UID, want.ResourceVersion, want.CreationTimestamp = obj.UID, "2", metav1.Unix(start.Unix(), 0)
			want.Generation = obj.Generation
			w.equal("answer", want, obj)
			if len(obj.UID) != 36 || obj.UID[14] != '4' || strings.Count(string(obj.UID), "-") != 4 {
				w.Errorf("UID %q does not look like one", obj.UID)
			}
		}},
		{"the first generation of a kind that counts them is 1, and its status is dropped", func(w *world) {
			obj := widget("a")
			obj.Generation, obj.Status.Ready = 9, true
			w.create(obj)
			w.equal("generation", int64(1), obj.Generation)
			w.equal("status", WidgetStatus{}, obj.Status)
		}},
		{"times have seconds", func(w *world) {
			w.now = start.Add(999 * 1e6)
			obj := configMap("a")
			w.create(obj)
			if !obj.CreationTimestamp.Time.Equal(start) {
				w.Errorf("created %s, want %s", obj.CreationTimestamp, start)
			}
		}},
		{"of an existing object", func(w *world) {
			w.create(configMap("a"))
			before := w.Version()
			obj := configMap("a")
			w.wantError(w.c.Create(w.Context(), obj), 409, metav1.StatusReasonAlreadyExists, `configmaps "a" already exists`)
			w.equal("object after the error", configMap("a"), obj)
			w.wantChanges(before)
		}},
		{"of an object that is being deleted", func(w *world) {
			obj := configMap("a")
			obj.Finalizers = []string{"example.org/hold"}
			w.create(obj)
			w.must(w.c.Delete(w.Context(), obj))
			w.wantError(
				w.c.Create(w.Context(), configMap("a")), 409, metav1.StatusReasonAlreadyExists,
				`object is being deleted: configmaps "a" already exists`,
			)
		}},
		{"generated names differ, and are the same for the same seed", func(w *world) {
			names := func(w *world) (names []string) {
				for range 3 {
					obj := configMap("")
					obj.GenerateName = "a-"
					w.create(obj)
					names = append(names, obj.Name)
				}
				return names
			}
			first := names(w)
			if first[0] == first[1] || first[1] == first[2] || len(first[0]) != len("a-")+5 ||
				!strings.HasPrefix(first[0], "a-") {
				w.Errorf("names %v", first)
			}
			w.equal("names of another server", first, names(newWorld(w.TB)))
		}},
		{"a long prefix of a name is cut", func(w *world) {
			obj := configMap("")
			obj.GenerateName = strings.Repeat("a", 100)
			w.create(obj)
			w.equal("length", 63, len(obj.Name))
		}},
		{"a generated name that is taken is replaced by another one", func(w *world) {
			other := newWorld(w.TB)
			obj := configMap("")
			obj.GenerateName = "a-"
			other.create(obj)
			w.create(configMap(obj.Name))
			again := configMap("")
			again.GenerateName = "a-"
			w.create(again)
			if again.Name == obj.Name {
				w.Error("two objects have the same name")
			}
		}},
		{"a generated name that is taken eight times is an error", func(w *world) {
			other := newWorld(w.TB)
			for range 8 {
				obj := configMap("")
				obj.GenerateName = "a-"
				other.create(obj)
				w.create(configMap(obj.Name))
			}
			obj := configMap("")
			obj.GenerateName = "a-"
			w.wantError(w.c.Create(w.Context(), obj), 409, metav1.StatusReasonAlreadyExists, `configmaps "a-`)
		}},
		{"a resource version is refused", func(w *world) {
			obj := configMap("a")
			obj.ResourceVersion = "5"
			w.wantError(w.c.Create(w.Context(), obj), 500, "", "resourceVersion should not be set on objects to be created")
		}},
		{"without a name", func(w *world) {
			w.wantError(w.c.Create(w.Context(), widget("")), 422, metav1.StatusReasonInvalid,
				`Widget.example.org "" is invalid: metadata.name: Required value: name or generateName is required`)
		}},
		{"invalid labels", func(w *world) {
			obj := widget("a")
			obj.Labels = map[string]string{"-": "x"}
			w.wantError(
				w.c.Create(w.Context(), obj), 422, metav1.StatusReasonInvalid,
				`Widget.example.org "a" is invalid: metadata.labels: Invalid value: "-"`,
			)
		}},
		{"without a namespace", func(w *world) {
			obj := configMap("a")
			obj.Namespace = ""
			if err := w.c.Create(w.Context(), obj); err == nil ||
				err.Error() != "an empty namespace may not be set during creation" {
				w.Errorf("error %v", err)
			}
		}},
		{"in a namespace that does not exist", func(w *world) {
			obj := configMap("a")
			obj.Namespace = "nowhere"
			w.wantError(w.c.Create(w.Context(), obj), 404, metav1.StatusReasonNotFound, `namespaces "nowhere" not found`)
		}},
		{"a cluster-scoped kind has no namespace", func(w *world) {
			obj := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
			w.create(obj)
			w.equal("namespace", "", obj.Namespace)
		}},
		{"duplicate owners are merged", func(w *world) {
			ref := metav1.OwnerReference{APIVersion: "v1", Kind: "Secret", Name: "s", UID: "1"}
			other := ref
			other.Name = "t"
			obj := configMap("a")
			obj.OwnerReferences = []metav1.OwnerReference{ref, other, ref}
			w.create(obj)
			w.equal("owners", []metav1.OwnerReference{ref, other}, obj.OwnerReferences)
		}},
		{"a dry run has no effect", func(w *world) {
			before := w.Version()
			obj := configMap("a")
			w.must(w.c.Create(w.Context(), obj, client.DryRunAll))
			if obj.UID == "" || obj.ResourceVersion != "" {
				w.Errorf("UID %q, resource version %q", obj.UID, obj.ResourceVersion)
			}
			w.wantChanges(before)
		}},
		{"the caller's object is not the stored one", func(w *world) {
			obj := configMap("a")
			w.create(obj)
			obj.Data["key"] = "changed"
			obj.Labels["app"] = "changed"
			var got corev1.ConfigMap
			w.must(w.c.Get(w.Context(), client.ObjectKeyFromObject(obj), &got))
			want := configMap("a")
			want.UID, want.ResourceVersion, want.CreationTimestamp, want.Generation =
				obj.UID, obj.ResourceVersion, obj.CreationTimestamp, obj.Generation
			w.equal("stored", want, &got)
		}},
		{"typed objects lose their kind", func(w *world) {
			obj := configMap("a")
			obj.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}
			w.create(obj)
			w.equal("kind", metav1.TypeMeta{}, obj.TypeMeta)
		}},
		{"managed fields are not kept before something is applied", func(w *world) {
			obj := configMap("a")
			obj.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "me", Operation: metav1.ManagedFieldsOperationUpdate}}
			w.create(obj)
			w.equal("managed fields", []metav1.ManagedFieldsEntry(nil), obj.ManagedFields)
		}},
	})
}

func TestIdentity(t *testing.T) {
	w := newWorld(t)
	first := configMap("a")
	w.create(first)
	w.must(w.c.Delete(w.Context(), first))
	second := configMap("a")
	w.create(second)
	other := newWorld(t)
	other.create(configMap("b"))
	again := configMap("a")
	other.create(again)
	seen := map[types.UID]bool{first.UID: true, second.UID: true}
	if len(seen) != 2 {
		t.Error("two objects with one name have the same UID")
	}
	if diff := cmp.Diff(first.UID, again.UID); diff != "" {
		t.Errorf("the UID does not only depend on the seed and the name (-first +again):\n%s", diff)
	}
}
