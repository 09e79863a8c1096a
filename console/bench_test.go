// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"trueup.dev/console"
	"trueup.dev/observe/recorder"
)

// BenchmarkPage measures how long a page takes with 10,000 objects. An open page is rendered at most once a second.
func BenchmarkPage(b *testing.B) {
	r := recorder.New(recorder.Options{})
	for i := range 10_000 {
		var err error
		if i%100 == 0 {
			err = errors.New("exceeded quota")
		}
		play(r, fmt.Sprintf("object-%05d", i), err)
	}
	handler := console.Handler(r)
	for _, path := range []string{
		"/", "/?q=object-04711", "/objects/database/default/object-00100", "/controllers/database",
	} {
		b.Run(path, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				answer := httptest.NewRecorder()
				request := httptest.NewRequestWithContext(b.Context(), http.MethodGet, path, http.NoBody)
				handler.ServeHTTP(answer, request)
				if answer.Code != http.StatusOK {
					b.Fatalf("status %d", answer.Code)
				}
			}
		})
	}
}
