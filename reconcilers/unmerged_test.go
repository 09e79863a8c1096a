// SPDX-License-Identifier: Apache-2.0

package reconcilers_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/internal/testkit/fixture"
	"trueup.dev/reconcilers"
)

// Is a field reported that the author sets and the merge forgets? Once, without a request, and not if the author says
// that it is intended.
func TestUpdatingObjectManager_WhichFieldsAreNotMerged(t *testing.T) {
	service := func(change func(*corev1.Service)) *corev1.Service {
		s := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "it"},
			Spec: corev1.ServiceSpec{
				Selector: map[string]string{"app": "it"}, Ports: []corev1.ServicePort{{Name: "http", Port: 80}},
			},
		}
		change(s)
		return s
	}
	for name, tc := range map[string]struct {
		desired  func(*corev1.Service)
		merge    func(current, desired *corev1.Service)
		unmerged []string
		want     []string
	}{
		"all are merged": {
			desired: func(s *corev1.Service) { s.Labels = map[string]string{"a": "b"} },
			merge:   func(current, desired *corev1.Service) { current.Labels, current.Spec = desired.Labels, desired.Spec },
		},
		"two are forgotten": {
			desired: func(s *corev1.Service) {
				s.Labels, s.Spec.Type = map[string]string{"a": "b"}, corev1.ServiceTypeNodePort
			},
			merge: func(current, desired *corev1.Service) {
				current.Spec.Ports, current.Spec.Selector = desired.Spec.Ports, desired.Spec.Selector
			},
			want: []string{`fields=["metadata.labels[a]" "spec.type"]`},
		},
		"one is forgotten on purpose": {
			desired:  func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort },
			merge:    func(current, desired *corev1.Service) { current.Spec.Ports = desired.Spec.Ports },
			unmerged: []string{".spec.type"},
		},
		"not set by the author": {
			desired: func(*corev1.Service) {},
			merge:   func(current, _ *corev1.Service) { current.Spec.Type = corev1.ServiceTypeClusterIP },
		},
	} {
		t.Run(name, func(t *testing.T) {
			actual := service(func(s *corev1.Service) { s.UID, s.ResourceVersion, s.CreationTimestamp = "uid", "999", longAgo })
			w := newWorld(t, newResource(), actual)
			logged := []string{}
			ctx := logr.NewContext(w.Context(), funcr.New(func(_, args string) {
				if _, fields, found := strings.Cut(args, `"fields"`); found && strings.Contains(args, "does not copy fields") {
					logged = append(logged, "fields"+fields)
				}
			}, funcr.Options{}))
			manager := &reconcilers.UpdatingObjectManager[*corev1.Service]{MergeBeforeUpdate: tc.merge, Unmerged: tc.unmerged}
			var parent client.Object = &fixture.Resource{ObjectMeta: newResource().ObjectMeta}
			current := actual
			for range 3 {
				var err error
				if current, err = manager.Manage(ctx, parent, current, service(tc.desired)); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(fmt.Sprint(tc.want), fmt.Sprint(logged)); diff != "" {
				t.Errorf("unexpected log lines (-want +got):\n%s", diff)
			}
		})
	}
}
