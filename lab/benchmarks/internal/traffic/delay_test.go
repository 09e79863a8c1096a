// SPDX-License-Identifier: Apache-2.0

package traffic_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"trueup.dev/lab/benchmarks/internal/traffic"
)

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := traffic.Delay(20 * time.Millisecond)(answer(http.StatusOK, nil))
		begin := time.Now()
		response, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "/api/v1/nodes", nil))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if took := time.Since(begin); took != 20*time.Millisecond {
			t.Errorf("the request took %s, want 20ms", took)
		}
	})
}

func TestDelay_Interrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := traffic.Delay(time.Hour)(answer(http.StatusOK, nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		_, err := transport.RoundTrip(httptest.NewRequest(http.MethodGet, "/api/v1/nodes", nil).WithContext(ctx))
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the error of the context", err)
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("the request took %s, want 1s", took)
		}
	})
}
