// SPDX-License-Identifier: Apache-2.0

package testing

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// finalizersPatch is a patch of the finalizers of the resource, with a resource version if there is one.
func finalizersPatch(finalizers, version string) PatchRef {
	metadata := `"finalizers":` + finalizers
	if version != "" {
		metadata += `,"resourceVersion":"` + version + `"`
	}
	return PatchRef{
		Group: fixture.GroupVersion.Group, Kind: "Resource", Namespace: "default", Name: "test",
		PatchType: types.MergePatchType, Patch: []byte(`{"metadata":{` + metadata + `}}`),
	}
}

func patchedEvents(obj client.Object, scheme *runtime.Scheme, finalizers ...string) []Event {
	return each(finalizers, func(finalizer string) Event {
		return NewEvent(obj, scheme, "Normal", "FinalizerPatched", "Patched finalizer %q", finalizer)
	})
}

// Which version the API gives to an object whose finalizers are patched need not be known to write a case.
func TestSubReconcilerTestCase_NeedsNoVersionAfterAFinalizerPatch(t *testing.T) {
	scheme := fixture.NewScheme()
	resource := func(version string, finalizers ...string) *fixture.Resource {
		return &fixture.Resource{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "test", ResourceVersion: version, Finalizers: finalizers,
		}}
	}
	factory := func(
		*testing.T, *SubReconcilerTestCase[*fixture.Resource], reconcilers.Config,
	) reconcilers.SubReconciler[*fixture.Resource] {
		return &reconcilers.SyncReconciler[*fixture.Resource]{Sync: func(ctx context.Context, r *fixture.Resource) error {
			for _, finalizer := range []string{"a", "b"} {
				if err := reconcilers.AddFinalizer(ctx, r, finalizer); err != nil {
					return err
				}
			}
			return nil
		}}
	}
	for _, given := range []string{"", "999", "7"} {
		first, moved := given, "1001"
		switch given {
		case "":
			first = "999"
		case "7":
			moved = "9"
		}
		between := map[string]string{"999": "1000", "7": "8"}[first]
		for _, expected := range []string{"", given, moved} {
			for _, second := range []string{"", first, between} {
				for _, realistic := range []bool{false, true} {
					name := fmt.Sprintf("given %q, expected %q, second patch %q, realistic %t", given, expected, second, realistic)
					t.Run(name, func(t *testing.T) {
						tc := SubReconcilerTestCase[*fixture.Resource]{
							Resource: resource(given), ExpectResource: resource(expected, "a", "b"), Realistic: realistic,
							ExpectPatches: []PatchRef{finalizersPatch(`["a"]`, first), finalizersPatch(`["a","b"]`, second)},
							ExpectEvents:  patchedEvents(resource(""), scheme, "a", "b"),
						}
						tc.Run(t, scheme, factory)
					})
				}
			}
		}
	}
}

// The rule is for what the kit has moved itself.
func TestExpectConfig_VersionsCountOtherwise(t *testing.T) {
	scheme := fixture.NewScheme()
	stored := &fixture.Resource{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "test", ResourceVersion: "999"}}
	versioned := func(version string) *fixture.Resource {
		r := stored.DeepCopy()
		r.ResourceVersion = version
		return r
	}
	config := func() *ExpectConfig { return &ExpectConfig{Scheme: scheme, GivenObjects: []client.Object{stored}} }
	open := func(c *ExpectConfig) context.Context {
		return reconcilers.StashOriginalConfig(t.Context(), c.Config())
	}
	differs := func(c *ExpectConfig, expected, observed string) bool {
		settled := c.settleVersion(versioned(expected), versioned(observed), true)
		return DefaultDiffer.Resource(settled, versioned(observed)) != ""
	}

	untouched := config()
	open(untouched)
	if !differs(untouched, "999", "1000") {
		t.Error("without a patch any version is right")
	}
	labeled := config()
	open(labeled)
	r := stored.DeepCopy()
	if err := labeled.Config().Patch(
		t.Context(), r, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`)),
	); err != nil {
		t.Fatal(err)
	}
	if !differs(labeled, "999", r.ResourceVersion) {
		t.Error("after a patch of labels any version is right")
	}

	patched := config()
	ctx := open(patched)
	r = stored.DeepCopy()
	for _, finalizer := range []string{"a", "b"} {
		if err := reconcilers.AddFinalizer(ctx, r, finalizer); err != nil {
			t.Fatal(err)
		}
	}
	if differs(patched, "999", "1001") || !differs(patched, "998", "1001") || !differs(patched, "999", "1002") ||
		!differs(patched, "1001", "1000") {
		t.Error("other versions than those of the patches are right")
	}
	for _, tc := range []struct {
		name  string
		patch PatchRef
		want  bool
	}{
		{"the one that was sent", finalizersPatch(`["a","b"]`, "1000"), true},
		{"the one before", finalizersPatch(`["a","b"]`, "999"), true},
		{"none", finalizersPatch(`["a","b"]`, ""), true},
		{"one after", finalizersPatch(`["a","b"]`, "1001"), false},
		{"another", finalizersPatch(`["a","b"]`, "1"), false},
		{"other finalizers", finalizersPatch(`["a","c"]`, "1000"), false},
	} {
		if same := patched.diffPatch(tc.patch, finalizersPatch(`["a","b"]`, "1000")) == ""; same != tc.want {
			t.Errorf("%s: same %t, want %t", tc.name, same, tc.want)
		}
	}
	if patched.diffPatch(finalizersPatch(`["a"]`, ""), finalizersPatch(`["a"]`, "999")) == "" {
		t.Error("the first patch needs no version")
	}
	status := finalizersPatch(`["a"]`, "1000")
	status.SubResource, status.Patch = "status", []byte(`{"metadata":{"resourceVersion":"1000"},"status":{"size":1}}`)
	without := status
	without.Patch = []byte(`{"status":{"size":1}}`)
	if diff := patched.diffPatch(without, status); diff != "" {
		t.Errorf("a status patch needs the version:\n%s", diff)
	}
}
