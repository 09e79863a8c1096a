// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// TestMetricsAPIIsNotServed checks what "kubectl top" reports at once: discovery does not list the metrics API.
func TestMetricsAPIIsNotServed(t *testing.T) {
	t.Parallel()
	p := sharedProcess(t)
	groups, err := p.client.Discovery().ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range groups.Groups {
		if group.Name == "metrics.k8s.io" {
			t.Errorf("discovery lists %s", group.Name)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), atOnce)
	defer cancel()
	path := p.client.Discovery().RESTClient().Get().AbsPath("/apis/metrics.k8s.io/v1beta1/nodes")
	if err := path.Do(ctx).Error(); !apierrors.IsNotFound(err) {
		t.Errorf("got error %v, want not found", err)
	}
}
