// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"trueup.dev/console"
)

// The controller fails, so its requests are added to the queue again.
func TestHowLongAreRequestsInTheQueue(t *testing.T) {
	c, address := runCopier(t, console.Options{})
	fails := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "fails"}}
	if err := c.Create(t.Context(), fails); err != nil {
		t.Fatal(err)
	}
	var got console.Controller
	page := "http://" + address + "/console/controllers/copier"
	eventually(t, page, "application/json", "", func(_ int, body string) bool {
		got = console.Controller{}
		start, end := strings.Index(body, "{"), strings.LastIndex(body, "}")
		return start > 0 && json.Unmarshal([]byte(body[start:end+1]), &got) == nil &&
			got.Queue != nil && got.Queue.Retries > 0
	})
	if q := got.Queue; q.Workers != 1 || q.Busy > 1 || q.Wait <= 0 || q.WaitMost <= 0 {
		t.Errorf("queue: %+v", q)
	}
	if got.Wired || len(got.Reconcilers) > 0 {
		t.Errorf("a controller without a tree has reconcilers: %+v", got.Reconcilers)
	}
}
