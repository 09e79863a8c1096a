// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestMaskHides(t *testing.T) {
	mask := Mask{Paths: []string{"spec.auth.password", "data.token", "spec.containers[app].env"}}
	for path, want := range map[string]bool{
		"spec.auth.password":                 true,
		"spec.auth.password.value":           true,
		"spec.auth.passwordPolicy":           false,
		"spec.auth":                          true, // the value contains the password
		"spec":                               true,
		"spec.size":                          false,
		"data[token]":                        true,
		"data[tokens]":                       false,
		"spec.containers[app].env[A].value":  true,
		"spec.containers[web].env[A].value":  false,
		"status.conditions[Ready:False=Bad]": false,
	} {
		if got := mask.hides(path); got != want {
			t.Errorf("%s: hidden is %v, want %v", path, got, want)
		}
	}
	if (Mask{}).hides("data[a]") || !(Mask{All: true}).hides("data[a]") {
		t.Error("values are hidden without a mask, or shown with one for all")
	}
}

// TestAreValuesOfSecretsShown tests objects whose kind is known, is unknown, and is in the object.
func TestAreValuesOfSecretsShown(t *testing.T) {
	unstructuredSecret := func(value string) client.Object {
		obj := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": value}}}
		obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		return obj
	}
	type secretView struct{ corev1.ConfigMap }
	for name, tc := range map[string]struct {
		kind          schema.GroupKind
		before, after client.Object
		want          string
	}{
		"unknown kind": {
			before: &corev1.Secret{Data: map[string][]byte{"a": {1}}}, after: &corev1.Secret{Data: map[string][]byte{"a": {2}}},
			want: masked,
		},
		"unstructured": {before: unstructuredSecret("MQ=="), after: unstructuredSecret("Mg=="), want: masked},
		"another Go type": {
			kind:   schema.GroupKind{Kind: "Secret"},
			before: &secretView{corev1.ConfigMap{Data: map[string]string{"a": "1"}}},
			after:  &secretView{corev1.ConfigMap{Data: map[string]string{"a": "2"}}},
			want:   masked,
		},
		"no Secret": {
			before: &corev1.ConfigMap{Data: map[string]string{"a": "1"}},
			after:  &corev1.ConfigMap{Data: map[string]string{"a": "2"}}, want: `"2"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := changes(tc.kind, tc.before, tc.after, Mask{})
			if len(got) != 1 || got[0].After != tc.want {
				t.Errorf("got %v, want one change to %s", got, tc.want)
			}
		})
	}
}
