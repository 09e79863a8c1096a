// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"

	apierrs "k8s.io/apimachinery/pkg/api/errors"
)

// outcomeUnknown reports whether a write may have taken effect despite the error: there was no response, or the server
// failed while it processed the request. A response that rejects the write is certain.
func outcomeUnknown(err error) bool {
	if status := apierrs.APIStatus(nil); errors.As(err, &status) {
		return status.Status().Code >= http.StatusInternalServerError
	}
	if dial := (*net.OpError)(nil); errors.As(err, &dial) && dial.Op == "dial" {
		return false
	}
	var (
		sent    *url.Error
		network net.Error
	)
	return errors.As(err, &sent) || errors.As(err, &network) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
