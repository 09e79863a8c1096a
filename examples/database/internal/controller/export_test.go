// SPDX-License-Identifier: Apache-2.0

package controller

// CertificateStash is what one step hands to another, for cases that test one step alone.
var CertificateStash = certificateStash
