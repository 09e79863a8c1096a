// SPDX-License-Identifier: Apache-2.0

package memapi_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/memapi"
)

// recordingAdmission replaces the value "old" by "new" in config maps, refuses those with the value "bad", and records
// the requests.
type recordingAdmission struct {
	requests []string
	// before is called before each decision, if it is set.
	before func()
}

func (a *recordingAdmission) Handles(r memapi.AdmissionRequest) bool {
	return r.Kind.Kind == "ConfigMap"
}

func (a *recordingAdmission) Mutate(r memapi.AdmissionRequest) ([]byte, error) {
	if a.before != nil {
		a.before()
	}
	return bytes.ReplaceAll(r.Object, []byte(`"old"`), []byte(`"new"`)), nil
}

func (a *recordingAdmission) Validate(r memapi.AdmissionRequest) error {
	a.requests = append(a.requests, string(r.Operation)+" "+r.Key.Name)
	if bytes.Contains(r.Object, []byte(`"bad"`)) {
		return errors.New("refused")
	}
	return nil
}

func valueMap(value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Data: map[string]string{"value": value},
	}
}

func TestAdmission(t *testing.T) {
	admission := &recordingAdmission{}
	server := memapi.New(memapi.Options{Registry: newRegistry(t), Admission: admission})
	c := server.Client("test")
	obj := valueMap("old")
	if err := c.Create(t.Context(), obj); err != nil || obj.Data["value"] != "new" {
		t.Errorf("create: value %q, error %v", obj.Data["value"], err)
	}
	obj.Data["value"] = "old"
	version := obj.ResourceVersion
	if err := c.Update(t.Context(), obj); err != nil || obj.Data["value"] != "new" || obj.ResourceVersion != version {
		t.Errorf("update: value %q, version %s, error %v, want no change", obj.Data["value"], obj.ResourceVersion, err)
	}
	obj.Data["value"] = "bad"
	if err := c.Update(t.Context(), obj); err == nil {
		t.Error("update: want an error")
	}
	if err := c.Delete(t.Context(), obj); err != nil {
		t.Error(err)
	}
	want := []string{
		string(admissionv1.Create) + " a", string(admissionv1.Update) + " a", string(admissionv1.Update) + " a",
		string(admissionv1.Delete) + " a",
	}
	if diff := cmp.Diff(want, admission.requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// TestAdmissionThatWrites writes the object during an update of it, which must not be lost.
func TestAdmissionThatWrites(t *testing.T) {
	admission := &recordingAdmission{}
	c := memapi.New(memapi.Options{Registry: newRegistry(t), Admission: admission}).Client("test")
	if err := c.Create(t.Context(), valueMap("1")); err != nil {
		t.Fatal(err)
	}
	admission.before = func() {
		admission.before = nil
		patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"other":"2"}}`))
		if err := c.Patch(t.Context(), valueMap(""), patch); err != nil {
			t.Error(err)
		}
	}
	patched := valueMap("")
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"value":"3"}}`))
	if err := c.Patch(t.Context(), patched, patch); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"value": "3", "other": "2"}, patched.Data); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}
