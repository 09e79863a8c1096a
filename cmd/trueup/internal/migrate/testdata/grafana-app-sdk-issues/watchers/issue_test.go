// SPDX-License-Identifier: Apache-2.0

package watchers

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/grafana/grafana-app-sdk/operator"
	"github.com/grafana/grafana-app-sdk/resource"

	v1 "example.com/issues/v1"
)

type refusing struct{}

func (refusing) Apply(_, _, _ string) error { return errors.New("refused") }
func (refusing) Delete(_, _ string) error   { return nil }

func TestReconcile(t *testing.T) {
	issue := &v1.Issue{}
	issue.Generation = 1
	result, err := NewIssueReconciler(refusing{}, nil).Reconcile(context.Background(), operator.ReconcileRequest{
		Action: operator.ReconcileActionCreated, Object: resource.Object(issue),
	})
	if err != nil {
		t.Fatal(err)
	}
	want := operator.ReconcileResult{RequeueAfter: &[]time.Duration{time.Minute}[0]}
	if result.RequeueAfter == want.RequeueAfter {
		return
	}
	t.Log("requeued after", result.RequeueAfter)
}
