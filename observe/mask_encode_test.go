// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/observe"
)

var maskedText = regexp.MustCompile(`masked[0-9a-f]{6}`)

// TestMask_Encode shows what a recording contains of an object.
func TestMask_Encode(t *testing.T) {
	metadata := metav1.ObjectMeta{
		Namespace: "default", Name: "a", UID: "1", ResourceVersion: "7", Labels: map[string]string{"app": "web"},
		Annotations: map[string]string{
			"note":                             "x",
			corev1.LastAppliedConfigAnnotation: `{"data":{"password":"aHVudGVyMg=="}}`,
		},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
	}
	const kept = `"labels":{"app":"web"},"name":"a","namespace":"default","resourceVersion":"7","uid":"1"}`
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "app", Image: "web:1", Env: []corev1.EnvVar{{Name: "KEY", Value: "k"}}, TTY: true},
		{Name: "side", Image: "side:1"},
	}}}
	for _, tc := range []struct {
		name string
		mask observe.Mask
		kind string
		obj  client.Object
		want string
	}{
		{
			"values of a Secret are masked, and its keys and labels are kept",
			observe.Mask{},
			"Secret",
			&corev1.Secret{ObjectMeta: metadata, Type: "Opaque", Data: map[string][]byte{"password": []byte("hunter2")}},
			`{"apiVersion":"v1","data":{"password":"MASKED"},"kind":"Secret","metadata":{"annotations":{"note":"MASKED"},` +
				kept + `,"type":"Opaque"}`,
		},
		{
			"the values of other kinds are kept",
			observe.Mask{},
			"ConfigMap",
			&corev1.ConfigMap{ObjectMeta: metadata, Data: map[string]string{"a": "b"}},
			`{"apiVersion":"v1","data":{"a":"b"},"kind":"ConfigMap","metadata":{"annotations":{"note":"x"},` + kept + `}`,
		},
		{
			"masked paths",
			observe.Mask{Paths: []string{"data[token]"}},
			"ConfigMap",
			&corev1.ConfigMap{Data: map[string]string{"token": "b", "tokens": "c", "empty": ""}},
			`{"apiVersion":"v1","data":{"empty":"","token":"MASKED","tokens":"c"},"kind":"ConfigMap","metadata":{}}`,
		},
		{
			"a masked path with the name of an item",
			observe.Mask{Paths: []string{"spec.containers[app].env"}},
			"Pod", pod,
			`{"apiVersion":"v1","kind":"Pod","metadata":{},"spec":{"containers":[` +
				`{"env":[{"name":"MASKED","value":"MASKED"}],"image":"web:1","name":"app","resources":{},"tty":true},` +
				`{"image":"side:1","name":"side","resources":{}}]},"status":{}}`,
		},
		{
			"a masked path with the index of an item, and a boolean",
			observe.Mask{Paths: []string{"spec.containers[0].tty"}},
			"Pod", pod,
			`{"apiVersion":"v1","kind":"Pod","metadata":{},"spec":{"containers":[` +
				`{"env":[{"name":"KEY","value":"k"}],"image":"web:1","name":"app","resources":{},"tty":false},` +
				`{"image":"side:1","name":"side","resources":{}}]},"status":{}}`,
		},
		{
			"all values",
			observe.Mask{All: true},
			"ConfigMap",
			&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"a": "b"}},
			`{"apiVersion":"v1","data":{"a":"MASKED"},"kind":"ConfigMap","metadata":{"name":"a"}}`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := tc.mask.Encode(schema.GroupVersionKind{Version: "v1", Kind: tc.kind}, tc.obj)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, maskedText.ReplaceAllString(string(got), "MASKED")); diff != "" {
				t.Errorf("object (-want +got):\n%s", diff)
			}
			if err := json.Unmarshal(got, tc.obj.DeepCopyObject()); err != nil {
				t.Errorf("a masked object cannot be decoded: %v", err)
			}
		})
	}
}

func TestMask_Encode_showsWhichTextsAreEqual(t *testing.T) {
	encode := func(password string) string {
		secret := &corev1.Secret{Data: map[string][]byte{"password": []byte(password)}}
		data, err := (observe.Mask{}).Encode(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, secret)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if first, again := encode("a"), encode("a"); first != again || first == encode("b") {
		t.Errorf("got %s and %s", encode("a"), encode("b"))
	}
}

func ExampleMask_Encode() {
	mask := observe.Mask{Paths: []string{"data[token]"}}
	config := &corev1.ConfigMap{Data: map[string]string{"mode": "fast", "token": ""}}
	data, err := mask.Encode(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, config)
	fmt.Println(string(data), err)
	// Output: {"apiVersion":"v1","data":{"mode":"fast","token":""},"kind":"ConfigMap","metadata":{}} <nil>
}
