//! A stream that ends when nobody waits for its handshake any more: russh's task would otherwise
//! keep the socket open for as long as the other side is silent.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};

/// What a connection runs over: a socket, or a channel of a bastion's connection.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A stream whose reading fails once its guard is dropped.
pub(super) struct Severable {
    inner: Box<dyn Stream>,
    severed: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Severable {
    /// The stream, and the guard to be disarmed when the connection is there to stay.
    pub(super) fn new(inner: Box<dyn Stream>) -> (Self, DropGuard) {
        let token = CancellationToken::new();
        let severed = Box::pin(token.clone().cancelled_owned());
        (Self { inner, severed }, token.drop_guard())
    }
}

impl AsyncRead for Severable {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.severed.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl AsyncWrite for Severable {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
