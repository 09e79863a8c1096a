// SPDX-License-Identifier: Apache-2.0

// Package workload contains the tasks of the contenders, and their controllers: each workload in its own file, with the
// hand-written controller before the tree of reconcilers.
package workload

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"trueup.dev/lab/benchmarks/internal/api"
	"trueup.dev/lab/benchmarks/internal/lab"
)

// All returns all workloads. The workloads slow, storm and tenants add the latency to each request.
func All(latency time.Duration) []lab.Workload {
	return []lab.Workload{
		Converge{},
		Large{},
		Apply{},
		ChildSet{},
		Sequence{},
		Tracking{},
		Slow{Latency: latency},
		Storm{Latency: latency},
		Tenants{Latency: latency},
	}
}

// syncPeriod is the default resync period of a manager.
const syncPeriod = 10 * time.Hour

// parent returns the i-th widget of a workload, with data for its children.
func parent(i int) *api.Widget {
	return &api.Widget{
		ObjectMeta: metav1.ObjectMeta{Namespace: lab.Namespace, Name: fmt.Sprintf("widget-%06d", i)},
		Spec:       api.WidgetSpec{Data: map[string]string{"greeting": "hello", "text": strings.Repeat("x", 512)}},
	}
}

func parentObject(i int) client.Object { return parent(i) }
