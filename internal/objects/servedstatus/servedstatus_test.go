// SPDX-License-Identifier: Apache-2.0

package servedstatus

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestIsTheStatusNotServed(t *testing.T) {
	resource := func(name, kind string) metav1.APIResource { return metav1.APIResource{Name: name, Kind: kind} }
	for name, tc := range map[string]struct {
		served []metav1.APIResource
		want   bool
	}{
		"nothing is served": {},
		"another kind is served": {
			served: []metav1.APIResource{resource("other", "Other"), resource("other/scale", "Thing")},
		},
		"with status": {
			served: []metav1.APIResource{resource("things", "Thing"), resource("things/status", "Thing")},
		},
		"only another kind has a status": {
			served: []metav1.APIResource{
				resource("things", "Thing"), resource("things/scale", "Scale"), resource("others/status", "Other"),
			},
			want: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lacksStatus(tc.served, "Thing"); got != tc.want {
				t.Errorf("lacksStatus() = %t, want %t", got, tc.want)
			}
		})
	}
}
