// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/reconcilers"
)

// manageAll creates, updates twice, once without a change, and deletes an object. It returns the log.
func manageAll[T client.Object](
	t *testing.T, verbosity int, r *reconcilers.UpdatingObjectManager[T], first, second T,
) string {
	t.Helper()
	log, lines := newLog(verbosity)
	w := newWorld(t)
	ctx := withLog(w.Context(), log)
	var none T
	// First, each call fails.
	w.Fail("create", errTest)
	_, err := r.Manage(ctx, newResource(), none, first.DeepCopyObject().(T))
	wantErr(t, errTest, err)
	w.Heal()
	actual, err := r.Manage(ctx, newResource(), none, first.DeepCopyObject().(T))
	wantErr(t, nil, err)
	w.Fail("update", errTest)
	_, err = r.Manage(ctx, newResource(), actual, second.DeepCopyObject().(T))
	wantErr(t, errTest, err)
	w.Heal()
	for range 2 {
		actual, err = r.Manage(ctx, newResource(), actual, second.DeepCopyObject().(T))
		wantErr(t, nil, err)
	}
	_, err = r.Manage(ctx, newResource(), actual, none)
	wantErr(t, nil, err)
	for _, message := range []string{
		"creating resource", "updating resource", "updated resource", "deleting unwanted resource",
	} {
		contains(t, lines.all(), message)
	}
	return lines.all()
}

// spellings returns the encodings in which a value may occur in a log.
func spellings(value string) []string {
	bytes := strings.Trim(fmt.Sprintf("%d", []byte(value)), "[]")
	return []string{value, base64.StdEncoding.EncodeToString([]byte(value)), bytes, strings.ReplaceAll(bytes, " ", ",")}
}

func TestUpdatingObjectManager_DoesNotLogSecrets(t *testing.T) {
	const first, second = "correct horse", "battery staple"
	for _, verbosity := range []int{0, 1, 10} {
		t.Run(fmt.Sprintf("typed at verbosity %d", verbosity), func(t *testing.T) {
			secret := func(value string) *corev1.Secret {
				return &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "child"},
					Data:       map[string][]byte{"password": []byte(value)}, StringData: map[string]string{"plain": value},
				}
			}
			logged := manageAll(t, verbosity, &reconcilers.UpdatingObjectManager[*corev1.Secret]{
				MergeBeforeUpdate: func(current, desired *corev1.Secret) {
					current.Data, current.StringData = desired.Data, desired.StringData
				},
			}, secret(first), secret(second))
			for _, spelling := range append(spellings(first), spellings(second)...) {
				lacks(t, logged, spelling)
			}
			contains(t, logged, "Secret default/child")
			contains(t, logged, `data[password]`)
		})
		t.Run(fmt.Sprintf("unstructured at verbosity %d", verbosity), func(t *testing.T) {
			secret := func(value string) *unstructured.Unstructured {
				return &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "v1", "kind": "Secret",
					"metadata":   map[string]any{"namespace": "default", "name": "child"},
					"data":       map[string]any{"password": base64.StdEncoding.EncodeToString([]byte(value))},
					"stringData": map[string]any{"plain": value},
				}}
			}
			logged := manageAll(t, verbosity, &reconcilers.UpdatingObjectManager[*unstructured.Unstructured]{
				Type: secret(""),
				MergeBeforeUpdate: func(current, desired *unstructured.Unstructured) {
					current.Object["data"], current.Object["stringData"] = desired.Object["data"], desired.Object["stringData"]
				},
			}, secret(first), secret(second))
			for _, spelling := range append(spellings(first), spellings(second)...) {
				lacks(t, logged, spelling)
			}
			contains(t, logged, "Secret default/child")
		})
	}
}

func TestUpdatingObjectManager_LogsValuesOnlyAtVerbosity1(t *testing.T) {
	const first, second = "first value", "second value"
	manager := func() *configMaps { return &configMaps{MergeBeforeUpdate: mergeData} }

	logged := manageAll(t, 0, manager(), wanted("child", "key", first), wanted("child", "key", second))
	lacks(t, logged, first)
	lacks(t, logged, second)
	contains(t, logged, "ConfigMap default/child")
	contains(t, logged, `data[key]`)

	logged = manageAll(t, 1, manager(), wanted("child", "key", first), wanted("child", "key", second))
	contains(t, logged, first)
	contains(t, logged, second)
}

func TestUpdatingObjectManager_LogsSanitizedObjects(t *testing.T) {
	for _, verbosity := range []int{0, 1} {
		t.Run(fmt.Sprintf("verbosity %d", verbosity), func(t *testing.T) {
			r := &configMaps{MergeBeforeUpdate: mergeData, Sanitize: func(cm *corev1.ConfigMap) any {
				public := "public part: " + cm.Data["public"]
				// Sanitize receives a copy.
				cm.Data = nil
				return public
			}}
			logged := manageAll(t, verbosity, r,
				wanted("child", "public", "first", "private", "confidential"), wanted(
					"child", "public", "second", "private", "confidential, too",
				))
			contains(t, logged, "public part: first")
			contains(t, logged, "public part: second")
			lacks(t, logged, "confidential")
		})
	}
}

func TestUpdatingObjectManager_LogsABoundedNumberOfPaths(t *testing.T) {
	before, after := wanted("child"), wanted("child")
	for i := range 50 {
		before.Data[fmt.Sprint("key-", i)], after.Data[fmt.Sprint("key-", i)] = "one", "two"
	}
	logged := manageAll(t, 0, &configMaps{MergeBeforeUpdate: mergeData}, before, after)
	line := ""
	for candidate := range strings.SplitSeq(logged, "\n") {
		if strings.Contains(candidate, `"updating resource"`) {
			line = candidate
		}
	}
	equal(t, "paths", 20, strings.Count(line, `data[`))
	contains(t, line, "…")
}
