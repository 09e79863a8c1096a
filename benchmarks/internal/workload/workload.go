// SPDX-License-Identifier: Apache-2.0

// Package workload has what the contenders have to do, and their controllers: each workload in a file of its own, with
// the hand-written controller first and the tree of reconcilers after it.
package workload

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/benchmarks/internal/api"
	"trueup.dev/benchmarks/internal/lab"
)

// All returns all workloads. Requests of the slow one take so much longer.
func All(latency time.Duration) []lab.Workload {
	return []lab.Workload{Converge{}, ChildSet{}, Sequence{}, Tracking{}, Slow{Latency: latency}}
}

// syncPeriod is how often a manager lists everything anew, by default.
const syncPeriod = 10 * time.Hour

// parent returns the i-th of the widgets of a workload, with some data for its children.
func parent(i int) *api.Widget {
	return &api.Widget{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: fmt.Sprintf("widget-%06d", i)},
		Spec:       api.WidgetSpec{Data: map[string]string{"greeting": "hello", "text": strings.Repeat("x", 512)}},
	}
}

func parentObject(i int) client.Object { return parent(i) }
